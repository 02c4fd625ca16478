/** Which generation an object of the contract belongs to. */
import type { ActorBag } from "./bags.js";

/** The same for every copy of this module, since all share the native classes. */
const BAG: unique symbol = Symbol.for("greenroom.bag");

interface Owned {
  [BAG]?: ActorBag;
}

/** Notes to whom an object belongs, and returns it. */
export function belongsTo<T extends object>(object: T, bag: ActorBag): T {
  return Object.defineProperty(object, BAG, { value: bag });
}

/** Marks what belongs to a transaction. */
const PLANNED: unique symbol = Symbol.for("greenroom.planned");

/** Notes to whom an object belongs whose changes are part of a transaction, and returns it. */
export function planned<T extends object>(object: T, bag: ActorBag): T {
  return Object.defineProperty(belongsTo(object, bag), PLANNED, { value: true });
}

/** Notes that rows were changed through an object: the turn commits them, or its transaction. */
export function wrote(object: object): void {
  if ((object as { [PLANNED]?: true })[PLANNED]) return;
  const bag = bagOf(object);
  bag.home.turns.wrote(bag);
}

/** The generation that an object belongs to. */
export function bagOf(object: object): ActorBag {
  const bag = (object as Owned)[BAG];
  if (bag === undefined) throw new TypeError("not an object of an actor of this environment");
  return bag;
}
