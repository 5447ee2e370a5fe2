/** Keeps constraints: which hosts of a model may receive a request, and the error where none may. */
import type { Caller } from '../../core/limits/plans.ts'
import { fullName, type Model, type ModelHost } from '../../core/models/models.ts'
import {
  type Breach,
  constraintsUnmet,
  type Demand,
  findBreach,
  nameDemands,
  type Receiver,
} from '../../core/policy/constraints.ts'
import { isModelAllowed } from '../../models/allowed-models.ts'
import { receiverAt } from '../../models/receivers.ts'
import type { ConfiguredProvider, Endpoints } from '../../providers/configured-provider.ts'
import type { Candidate } from './candidate.ts'

type Place = {
  readonly model: Pick<Model, 'policy'>
  readonly endpoint: ConfiguredProvider
  readonly host?: ModelHost | undefined
}

/** Returns the demands of account, project, key and request; undefined = there are none. */
export function joinDemands(
  { demands: ofCaller }: Pick<Caller, 'demands'>,
  ofRequest: readonly Demand[] | undefined,
): readonly Demand[] | undefined {
  if (ofCaller === undefined || ofRequest === undefined) return ofCaller ?? ofRequest
  return [...ofCaller, ...ofRequest]
}

/** Returns the receiver of an attempt at this place. */
export function findReceiver({ model, endpoint, host }: Place): Receiver {
  const { receiver, id, own } = endpoint
  return receiverAt({ receiver, id, isOperator: own === undefined, exceptions: [model.policy, host?.policy] })
}

/** Returns why a request must not be sent to this place; null = it may. */
export function placeBreach(demands: readonly Demand[] | undefined, place: Place): Breach | null {
  return demands === undefined || place.endpoint.receiver === null ? null : findBreach(demands, findReceiver(place))
}

/** Returns why no place of a model may receive a request; null = one may, or none is configured. */
export function modelBreach(endpoints: Endpoints, model: Model, demands: readonly Demand[] | undefined): Breach | null {
  if (demands === undefined) return null
  let breach: Breach | null = null
  for (const { endpoint, host } of getPlaces(endpoints, model)) {
    const found = placeBreach(demands, { model, endpoint, host })
    if (found === null) return null
    breach ??= found
  }
  return breach
}

/** All places that can serve a model: its hosts, each with own keys and with those of the operator. */
function getPlaces(endpoints: Endpoints, { provider, hosts }: Pick<Model, 'provider' | 'hosts'>) {
  const listed: readonly { readonly id: string; readonly host?: ModelHost }[] = hosts?.map(host => ({
    id: host.host,
    host,
  })) ?? [{ id: provider }]
  return listed.flatMap(({ id, host }) => {
    const endpoint = endpoints.get(id)
    const shared = endpoint?.own?.shared ?? null
    return [endpoint, shared].flatMap(other => (other == null ? [] : [{ endpoint: other, host }]))
  })
}

const declare =
  'The operator of this gateway declares what a provider guarantees as `policy` in GATEWAY_CONFIG; relax the constraint, or ask for it.'
const maximumNames = 8

type Unmet = {
  readonly breach: Breach
  readonly demands: readonly Demand[]
  /** The named model; null = any. */
  readonly model: Pick<Model, 'id' | 'provider'> | null
  readonly caller: Pick<Caller, 'models'>
}

/** Returns the error for a request whose model, or any model, no place may serve. It names models that would do. */
export function noPlaceError(
  { endpoints, catalog }: { readonly endpoints: Endpoints; readonly catalog: { readonly list: readonly Model[] } },
  { breach, demands, model, caller }: Unmet,
) {
  const able = catalog.list.filter(
    other =>
      isModelAllowed(caller.models, fullName(other)) &&
      getPlaces(endpoints, other).length > 0 &&
      modelBreach(endpoints, other, demands) === null,
  )
  const all = nameDemands(demands)
  const others = all.length === 1 ? '' : ` All constraints: ${all.join(', ')}.`
  const subject = model === null ? 'No model' : `No host of ${fullName(model)}`
  const named = able.slice(0, maximumNames).map(fullName).join(', ')
  const remedy = able.length === 0 ? `No model here does. ${declare}` : `Models that do: ${named}.`
  return constraintsUnmet(breach, subject, `${remedy}${others}`)
}

/** Throws if a candidate may not receive the request: no list of ways may lead here. */
export function assertAllowed(demands: readonly Demand[] | undefined, candidate: Candidate): void {
  const breach = placeBreach(demands, candidate)
  if (breach !== null) throw constraintsUnmet(breach, `No host of ${fullName(candidate.model)}`, declare)
}

/** Returns candidates at allowed places, those of the demanded order first. */
export function allowedCandidates(
  demands: readonly Demand[] | undefined,
  candidates: readonly Candidate[],
): readonly Candidate[] {
  if (demands === undefined) return candidates
  const allowed = candidates.filter(candidate => placeBreach(demands, candidate) === null)
  const order = demands.flatMap(demand => demand.order ?? [])
  if (order.length === 0) return allowed
  const rank = (candidate: Candidate) => {
    const { names } = findReceiver(candidate)
    const at = order.findIndex(name => names.includes(name))
    return at < 0 ? order.length : at
  }
  return allowed.toSorted((candidate, other) => rank(candidate) - rank(other))
}
