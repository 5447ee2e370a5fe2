export const healthStates = ['healthy', 'degraded', 'unhealthy'] as const
/** Displayed state of a model: unhealthy = not called; degraded = probed, or failing occasionally. */
export type HealthState = (typeof healthStates)[number]
