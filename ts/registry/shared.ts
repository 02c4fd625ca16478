/**
 * The hosts that are open in this environment, and which registries are on each.
 *
 * A registry that is set up again, as when a development server evaluates a module anew, takes over
 * the actors of the one before.
 *
 * 1. What runs under a name is the definition of the last `setup()`, in whatever order they are opened.
 * 2. A registry of whose actors others run all is superseded: its handles go on, and it does not keep
 *    the host open. Nothing here holds it any more.
 * 3. All of a host go through one opening, which is the last to end; each further registry that
 *    counts keeps one more open. So no call meets an opening that ends while the host stays.
 */

import type { Host, NapiActorFactory } from "../native-half";
import { once } from "../native-half";

/** How the end of a registry's part in a host went. */
export type Report = Awaited<ReturnType<Host["shutdown"]>>;

/** A registry, as far as the others on its host are concerned. */
export interface Tenant {
  /** Its place in the order of all that were set up here. */
  readonly order: number;
  readonly names: readonly string[];
  /** What runs of the actors that it takes over falls asleep at once. */
  readonly evicts: boolean;
  factoryOf(name: string): NapiActorFactory;
  /** See (2). `ending` is the end of its own part. */
  superseded(ending: Promise<unknown>): void;
  shutdown(deadline: number): Promise<unknown>;
}

/** How a registry opened its host. */
export interface HowOpened {
  /** Absent for memory. */
  readonly folder: string | undefined;
  readonly threads: string;
}

class SharedHosts {
  readonly #byHome = new Map<number, SharedHost>();
  #order = 0;

  /** The place of a registry that is set up now. */
  nextOrder(): number {
    this.#order += 1;
    return this.#order;
  }

  /** Whether a host is open here on a folder, by the path with which it was opened. */
  hasOpen(folder: string): boolean {
    return [...this.#byHome.values()].some((shared) => shared.folders.has(folder));
  }

  /** The host that is open here with this home. */
  at(home: number): SharedHost | undefined {
    return this.#byHome.get(home);
  }

  /** The host of an opening, with a registry on it from now on. */
  join(opened: Host, tenant: Tenant, how: HowOpened): SharedHost {
    let shared = this.#byHome.get(opened.home);
    if (shared === undefined) {
      shared = new SharedHost(this, opened, how.threads);
      this.#byHome.set(opened.home, shared);
    }
    shared.add(opened, tenant, how);
    return shared;
  }

  /** Its last registry has left it. */
  end(shared: SharedHost): void {
    this.#byHome.delete(shared.host.home);
  }
}

/** One for all copies of this module, which work with the classes of the first of them. */
export const sharedHosts = once("hosts", () => new SharedHosts());

export class SharedHost {
  /** Through which everybody calls. */
  readonly host: Host;
  /** Which threads may use it; the first opening decides. */
  readonly threads: string;
  /** The paths by which it was opened. */
  readonly folders = new Set<string>();
  /** See (3): one fewer than there are tenants. */
  readonly #further: Host[] = [];
  readonly #tenants = new Set<Tenant>();
  /** Whose definition runs under a name. */
  readonly #running = new Map<string, Tenant>();

  readonly #all: SharedHosts;
  #ended = false;

  constructor(all: SharedHosts, host: Host, threads: string) {
    this.#all = all;
    this.host = host;
    this.threads = threads;
  }

  /** Whether its last registry has left it. */
  get ended(): boolean {
    return this.#ended;
  }

  /** The one that has its place: itself, or one that was joined when it ended. */
  get current(): SharedHost {
    return this.#ended ? (this.#all.at(this.host.home) ?? this) : this;
  }

  /** A registry joins, by an opening of its own. */
  add(opened: Host, tenant: Tenant, { folder }: HowOpened): void {
    if (opened !== this.host) this.#further.push(opened);
    if (folder !== undefined) this.folders.add(folder);
    this.#take(tenant);
  }

  /** A registry leaves; the last one puts the actors to sleep. One that was superseded has left. */
  async leave(tenant: Tenant, graceMs: number): Promise<Report> {
    if (!this.#tenants.delete(tenant)) return { drained: 0, notDrained: [] };
    const one = this.#further.pop();
    if (one !== undefined) return one.shutdown(graceMs);
    this.#ended = true;
    this.#all.end(this);
    return this.host.shutdown(graceMs);
  }

  /** Shuts down all registries that are on it. */
  async shutdown(deadline: number): Promise<void> {
    await Promise.all([...this.#tenants].map((tenant) => tenant.shutdown(deadline)));
  }

  #take(tenant: Tenant): void {
    this.#tenants.add(tenant);
    for (const name of tenant.names) {
      const running = this.#running.get(name);
      if (running !== undefined && running.order > tenant.order) continue;
      this.host.register(name, tenant.factoryOf(name), tenant.evicts);
      this.#running.set(name, tenant);
    }
    for (const each of [...this.#tenants]) {
      if (!this.#counts(each)) each.superseded(this.leave(each, 0));
    }
  }

  #counts({ names, order }: Tenant): boolean {
    return names.length === 0 || names.some((name) => this.#running.get(name)?.order === order);
  }
}
