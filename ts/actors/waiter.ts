/** Who is told of waits: see `Live.waits`. */
export interface Waiter {
  /** The same promise, or one that follows it. */
  waits<T>(promise: Promise<T>): Promise<T>;
}
