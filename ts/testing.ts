/** `greenroom/testing`: a runtime in memory whose clock stands still until a test moves it. */

export type { Duration } from "./testing/duration";
export {
  type Awake,
  type CrashPoint,
  type EndOptions,
  type TestClock,
  type TestOptions,
  TestRuntime,
  testRuntime,
} from "./testing/runtime";
