/** What the contract's `CoreRegistry` has beyond Rust. */
import { CoreRegistry } from "../../index.js";

declare module "../../index.js" {
  interface CoreRegistry {
    /** Ends the registry; harmless when repeated. */
    shutdown(): Promise<void>;
  }
}

CoreRegistry.prototype.shutdown = async function shutdown(this: CoreRegistry): Promise<void> {
  this.close();
};

export { CoreRegistry };
