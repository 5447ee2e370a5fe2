/**
 * Constraints on the receivers of a prompt, and what a receiver guarantees. Account, project, key and request each make
 * demands, and a receiver must meet all of them. An unknown guarantee does not count.
 */
import { type Static, Type } from '@sinclair/typebox'
import { GatewayError } from '../validation/errors.ts'
import { invalidField, strictObject } from '../validation/validate.ts'
import { constraintsExample, parseConstraints, wordPattern } from './constraints-text.ts'

const flag = Type.Optional(Type.Boolean())
const word = Type.String({
  pattern: wordPattern,
  maxLength: 64,
  description: 'a name of 1 to 64 letters, digits and `_./:-`',
  examples: ['eu'],
})
const words = Type.Union([word, Type.Array(word, { minItems: 1, maxItems: 64 })])

/** Guarantees of a provider, host or model, as the operator declares them (`policy` in `GATEWAY_CONFIG`). */
export const policySchema = strictObject({ zdr: flag, no_training: flag, region: Type.Optional(words) })
export type PolicyRow = Static<typeof policySchema>

/** Guarantees of a receiver. */
export type DataPolicy = {
  /** It stores neither prompts nor outputs. */
  readonly zdr: boolean
  /** It trains no models with them. */
  readonly noTraining: boolean
  /** Regions within which it processes them. */
  readonly regions: readonly string[]
}

export const noPolicy: DataPolicy = { zdr: false, noTraining: false, regions: [] }

/** Returns a policy with the fields that `row` declares. */
export function withPolicy(policy: DataPolicy, row: PolicyRow | undefined): DataPolicy {
  if (row === undefined) return policy
  return {
    zdr: row.zdr ?? policy.zdr,
    noTraining: row.no_training ?? policy.noTraining,
    regions: row.region === undefined ? policy.regions : toWords(row.region),
  }
}

/** Returns a policy without what `row` denies. It adds no guarantee. */
export function narrowedPolicy(policy: DataPolicy, row: PolicyRow | undefined): DataPolicy {
  const declared = withPolicy(policy, row)
  return {
    zdr: policy.zdr && declared.zdr,
    noTraining: policy.noTraining && declared.noTraining,
    regions: policy.regions.filter(region => declared.regions.includes(region)),
  }
}

/** A party that can receive a prompt, or a part of it. */
export type Receiver = {
  /** Its ID first, then other names of it, in lower case. */
  readonly names: readonly string[]
  readonly policy: DataPolicy
}

/** What an account, project, key or request demands. */
export const constraintsSchema = strictObject(
  {
    zdr: flag,
    no_training: flag,
    region: Type.Optional(words),
    providers: Type.Optional(words),
    ignore_providers: Type.Optional(words),
  },
  { description: 'an object of `zdr`, `no_training`, `region`, `providers` and `ignore_providers`' },
)
export type ConstraintsRow = Static<typeof constraintsSchema>

const demanders = ['request', 'key', 'project', 'account'] as const
type Demander = (typeof demanders)[number]

/** Constraints of one demander. Null = no such constraint. */
export type Demand = {
  readonly by: Demander
  readonly zdr: boolean
  readonly noTraining: boolean
  readonly regions: readonly string[] | null
  readonly only: readonly string[] | null
  readonly ignored: readonly string[]
  /** The client's own fields for constraints that it wrote in another form; absent = `constraints`. */
  readonly fields?: Readonly<Record<string, string>>
  /** Hosts to call first, in this order; absent = no preference. */
  readonly order?: readonly string[]
}

/** Returns the demand of a row; null = it demands nothing. */
export function toDemand(by: Demander, row: ConstraintsRow | null | undefined): Demand | null {
  if (row == null) return null
  const { region, providers, ignore_providers: ignored } = row
  const demand: Demand = {
    by,
    zdr: row.zdr === true,
    noTraining: row.no_training === true,
    regions: region === undefined ? null : toWords(region),
    only: providers === undefined ? null : toWords(providers),
    ignored: ignored === undefined ? [] : toWords(ignored),
  }
  return nameDemands([demand]).length === 0 ? null : demand
}

/** Returns what a request demands in its body, its header and by other fields: all of it holds. Null = nothing. */
export function requestDemands(
  ...rows: readonly (ConstraintsRow | null | undefined)[]
): { readonly demands: readonly Demand[] } | null {
  const demands = rows.map(row => toDemand('request', row)).filter(demand => demand !== null)
  return demands.length === 0 ? null : { demands }
}

function toWords(value: string | readonly string[]): readonly string[] {
  return (typeof value === 'string' ? [value] : value).map(text => text.toLowerCase())
}

/** Reads `zdr, no_training, region=eu|us, providers=azure, ignore_providers=openai`. Throws `invalid_request`. */
export function readConstraintsHeader(headers: Headers): ConstraintsRow | null {
  const text = headers.get(constraintsHeader)
  if (text === null) return null
  const row = parseConstraints(text)
  if (row === null) throw invalidField(constraintsHeader, `must be like \`${constraintsExample}\``)
  return row
}

const constraintsHeader = 'X-Gateway-Constraints'

/** A demand that a receiver does not meet: `zdr`, `region=eu`, whose it is, and the field that has it. */
export type Breach = { readonly constraint: string; readonly by: Demander; readonly field: string }

/** Returns the first demand that a receiver does not meet; null = it meets all. */
export function findBreach(demands: readonly Demand[], { names, policy }: Receiver): Breach | null {
  for (const demand of demands) {
    const { by, zdr, noTraining, regions, only, ignored, fields } = demand
    const unmet =
      zdr && !policy.zdr
        ? 'zdr'
        : noTraining && !policy.noTraining
          ? 'no_training'
          : regions !== null && !isWithin(policy.regions, regions)
            ? `region=${regions.join('|')}`
            : only !== null && !names.some(name => only.includes(name))
              ? `providers=${only.join('|')}`
              : names.some(name => ignored.includes(name))
                ? `ignore_providers=${ignored.join('|')}`
                : null
    if (unmet !== null) return { constraint: unmet, by, field: fields?.[unmet.split('=')[0] ?? unmet] ?? 'constraints' }
  }
  return null
}

/** A receiver that may process in several regions is within a list only if all of them are. */
function isWithin(regions: readonly string[], wanted: readonly string[]): boolean {
  return regions.length > 0 && regions.every(region => wanted.includes(region))
}

/** Returns the constraints of all demands in words, each once. */
export function nameDemands(demands: readonly Demand[]): readonly string[] {
  const names = demands.flatMap(({ zdr, noTraining, regions, only, ignored }) => [
    ...(zdr ? ['zdr'] : []),
    ...(noTraining ? ['no_training'] : []),
    ...(regions === null ? [] : [`region=${regions.join('|')}`]),
    ...(only === null ? [] : [`providers=${only.join('|')}`]),
    ...(ignored.length === 0 ? [] : [`ignore_providers=${ignored.join('|')}`]),
  ])
  return [...new Set(names)]
}

/** Returns a receiver with its guarantees: `azure (zdr, no_training, region=eu)`. */
export function describeReceiver({ names: [id = ''], policy: { zdr, noTraining, regions } }: Receiver): string {
  const guarantees = [
    ...(zdr ? ['zdr'] : []),
    ...(noTraining ? ['no_training'] : []),
    ...(regions.length === 0 ? [] : [`region=${regions.join('|')}`]),
  ]
  return `${id} (${guarantees.join(', ') || 'no guarantee'})`
}

/** Returns the error for demands that nothing meets. `subject`: what should; `remedy`: what would satisfy them. */
export function constraintsUnmet({ constraint, by, field }: Breach, subject: string, remedy: string): GatewayError {
  const own = field === 'constraints' ? 'this request' : `this request (\`${field}\`)`
  const whose = by === 'request' ? own : by === 'key' ? 'the API key' : `the ${by} of the key`
  const message = `${subject} meets the constraint \`${constraint}\` of ${whose}. ${remedy}`
  return new GatewayError('constraints_unmet', message, {
    ...{ param: field, shouldRetry: false, layer: 'constraints', category: constraint },
  })
}
