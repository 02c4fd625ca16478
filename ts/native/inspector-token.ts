/** The token that lets dashboards look into any actor, in the place of each one's own: for tests. */
export function inspectorToken(): string | undefined {
  return process.env._RIVET_TEST_INSPECTOR_TOKEN || undefined;
}
