/** Switches of models under `/api/v1/model-switches`, for owners of the operator's account. */
import { fullName, type Model } from '../../core/models/models.ts'
import type { ModelSwitch } from '../../core/models/switches.ts'
import { invalidField } from '../../core/validation/validate.ts'
import type { ConsoleDeps } from '../deps.ts'
import { type Authenticate, sessionRoute, sessionRoutes } from '../routes.ts'
import { findSwitchProblem, getHostIds, listModelSwitches, type StoredSettingsFollower, switchModel } from './follow.ts'
import { refuseOthers } from './routes.ts'
import { modelSwitchChangeSchema, modelSwitchesShape, modelSwitchShape, type ShownModelSwitch } from './schemas.ts'

type SwitchDeps = Pick<ConsoleDeps, 'announce'> & {
  /** All models, also those that are switched off. */
  readonly configuredModels: () => readonly Model[]
  readonly storedSettings: Pick<StoredSettingsFollower, 'look'>
  /** Settings that name models. */
  readonly config: {
    readonly rewriter: string | null
    readonly moderation: { readonly moderation: { readonly url: string | null; readonly model: string | null } | null }
    readonly routing: { readonly baselineModel: string | null; readonly judgeModel: string | null }
  }
}

export function modelSwitchRoutes(deps: SwitchDeps, identify: Authenticate) {
  const { configuredModels, storedSettings, announce, config } = deps
  const action = 'provider_keys.manage'
  return sessionRoutes('model-switches', identify, [
    sessionRoute({
      route: 'GET /api/v1/model-switches',
      action,
      summary: 'List all models with their switches',
      description: 'Also those that are switched off, which no other list has. Embedding models come last.',
      answer: modelSwitchesShape,
      async handle({ principal, database }) {
        await refuseOthers(database, principal.accountId)
        const switches = new Map((await listModelSwitches(database)).map(row => [row.model, row]))
        return { data: configuredModels().map(model => shownSwitch(model, switches.get(fullName(model)), config)) }
      },
    }),
    sessionRoute({
      route: 'PATCH /api/v1/model-switches',
      action,
      summary: 'Enable or disable a model, or order its hosts',
      description:
        'For all accounts, in every process within 1 s. Requests in progress finish. Absent fields stay; `hosts: null` is the order of the configuration. A switch adds no host: which exist, and at which prices, the configuration decides.',
      body: modelSwitchChangeSchema,
      answer: modelSwitchShape,
      async handle({ principal, body, database }) {
        await refuseOthers(database, principal.accountId)
        const models = configuredModels()
        const problem = findSwitchProblem(models, body)
        if (problem !== null) throw invalidField(...problem)
        const row = await switchModel(database, principal.accountId, body)
        // This process uses a change before its response, the others at once after.
        await storedSettings.look()
        announce()
        const model = models.find(other => fullName(other) === body.model)
        if (model === undefined) throw new Error('the model was found before')
        return shownSwitch(model, row, config)
      },
    }),
  ])
}

function shownSwitch(
  model: Model,
  row: ModelSwitch | undefined,
  { rewriter, moderation: { moderation }, routing }: SwitchDeps['config'],
): ShownModelSwitch {
  const uses = [
    ['enhancement.model', rewriter],
    // With a URL, the name belongs to the endpoint.
    ['safety.moderation.model', moderation?.url === null ? moderation.model : null],
    ['routing.baseline_model', routing.baselineModel],
    ['routing.judge_model', routing.judgeModel],
  ] as const
  return {
    model: fullName(model),
    display_name: model.displayName,
    enabled: row?.enabled ?? true,
    used_by: uses.flatMap(([setting, name]) => (name === fullName(model) || name === model.id ? [setting] : [])),
    configured_hosts: [...getHostIds(model)],
    hosts: row?.hosts == null ? null : [...row.hosts],
  }
}
