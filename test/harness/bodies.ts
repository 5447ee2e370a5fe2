import { BodyBudget } from '../../src/http/body-budget.ts'

/** Creates a budget that is never used up, for tests of other subjects. */
export function anyBodies(): BodyBudget {
  const none = Number.POSITIVE_INFINITY
  return new BodyBudget({ limits: { process: none, owner: none }, collect: () => {} })
}
