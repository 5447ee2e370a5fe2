/** Providers and their keys, for owners and admins. No schema of a response has a key. */
import { type Static, Type } from '@sinclair/typebox'
import { attemptFailures } from '../../core/chat/attempts.ts'
import { maximumNameCharacters } from '../../core/models/models.ts'
import { highestWeight } from '../../core/models/switches.ts'
import { oneOf, strictObject } from '../../core/validation/validate.ts'
import { count, id, list, modelName, namedSchema, orNull, text, time } from '../../http/schemas.ts'

const quota = orNull(strictObject({ limit: count, remaining: count }))

const providerState = {
  ...oneOf(['not_set', 'unused', 'working', 'rejected', 'rate_limited', 'unreachable']),
  description: 'as this process saw it: `not_set` = it has no key, `unused` = not called since the start',
}

const keyState = {
  ...oneOf(['unused', 'working', 'rejected', 'rate_limited', 'unreadable']),
  description: '`unreadable` = sealed under another secret: restore it, or rotate the key',
}

const providerShape = namedSchema('Provider', {
  id: text('openai'),
  simulated: Type.Boolean(),
  state: providerState,
  variable: { ...orNull(text('OPENAI_API_KEY')), description: 'environment variable of its key' },
  base_url_variable: { ...orNull(text('OPENAI_BASE_URL')), description: 'environment variable of its base URL' },
  local: Type.Boolean({ description: 'a server of the operator, which needs its address and no key' }),
  models: { ...count, description: 'models of the catalog that it serves' },
  reachable: {
    ...oneOf(['yes', 'no', 'unknown']),
    description: 'whether its last attempt got an HTTP response; `unknown` before the first attempt of this process',
  },
  last_success_at: orNull(time),
  last_error: orNull(strictObject({ code: oneOf(attemptFailures), at: time })),
  pool: {
    ...orNull(
      strictObject({
        keys: count,
        rejected_keys: { ...count, description: 'keys that the provider rejected, for a model or for all' },
        limits: Type.Array(strictObject({ model: modelName, requests: quota, tokens: quota }), {
          description: 'limits and remaining amounts as the upstream last reported them, summed over its accounts',
        }),
      }),
    ),
    description: 'null = one key, or registration is open, where any account could read it',
  },
  keys: {
    ...orNull(
      Type.Array(
        strictObject({
          name: text('main'),
          source: { ...oneOf(['environment', 'file', 'stored']), description: '`stored` = added in the gateway' },
          id: { ...orNull(id('pvk')), description: 'for changes of a stored key' },
          hint: { ...text('7f3q'), description: 'its last characters; empty = not known' },
          state: keyState,
        }),
      ),
    ),
    description: 'its keys, for owners of the operator’s account only; null otherwise',
  },
  takes_own_keys: Type.Boolean({ description: 'accounts and projects may have a key of their own here' }),
})

export const providerListShape = strictObject({
  data: Type.Array(providerShape),
  stored_keys: {
    ...oneOf(['allowed', 'off', 'not_operator']),
    description:
      'whether you may add keys for all accounts; `off` = STORED_PROVIDER_KEYS, `not_operator` = another account runs the gateway',
  },
})
export type ShownProvider = Static<typeof providerShape>

export const providerKeyShape = namedSchema('ProviderKey', {
  id: id('pvk'),
  serves: {
    ...oneOf(['gateway', 'account', 'project']),
    description:
      'whose requests use it: `gateway` = all, since the account is the operator’s; else it is an own key, whose calls are not billed',
  },
  project_id: { ...orNull(id('prj')), description: 'project whose requests use it; null = not of one project' },
  fallback: {
    ...orNull(Type.Boolean()),
    description: 'whether the operator’s keys, which are billed, serve when this own key fails; null = no own key',
  },
  state: keyState,
  provider: text('openai'),
  name: text('main'),
  hint: { ...text('7f3q'), description: 'its last characters; the key itself is never shown' },
  created_at: time,
  updated_at: { ...time, description: 'its last rotation, or its creation' },
})
export const providerKeysShape = list(providerKeyShape)
export type ShownProviderKey = Static<typeof providerKeyShape>

/** Visible ASCII characters: it becomes part of a header. */
export const providerKeySchema = Type.String({
  pattern: '^[\\x21-\\x7e]{8,4096}$',
  maxLength: 4_096,
  description: 'a key of 8 to 4,096 visible ASCII characters, without spaces',
})
/** As names of keys in the configuration file. */
export const providerKeyNameSchema = Type.String({
  pattern: '^[A-Za-z0-9][A-Za-z0-9_.-]{0,31}$',
  maxLength: 32,
  description: 'a name of at most 32 letters, digits, `_`, `.` and `-`',
})
const ownKeyFallback = Type.Boolean({
  description: 'of an own key: whether the operator’s keys, which are billed, serve when it fails',
})
export const providerKeyCreationSchema = strictObject({
  provider: Type.String({ minLength: 1, maxLength: 32, description: 'ID of a provider from the list of providers' }),
  name: Type.Optional({
    ...providerKeyNameSchema,
    description: `${providerKeyNameSchema.description}; "main" unless sent`,
  }),
  key: providerKeySchema,
  project_id: Type.Optional({
    ...orNull(Type.String({ maxLength: 64 })),
    description: 'project whose requests use it; null unless sent',
  }),
  fallback: Type.Optional({
    ...ownKeyFallback,
    description: `${ownKeyFallback.description}; true unless sent`,
  }),
})
export const providerKeyChangeSchema = strictObject({ fallback: ownKeyFallback })
export const providerKeyRotationSchema = strictObject({ key: providerKeySchema })

export const providerTestSchema = strictObject({
  key: Type.Optional({ ...providerKeyNameSchema, description: 'name of one of its keys; its first one unless sent' }),
})
export const providerTestedShape = strictObject({
  result: {
    ...oneOf(['working', 'rejected', 'rate_limited', 'unreachable', 'unsupported']),
    description: '`unsupported` = the provider has no free call',
  },
  status: { ...orNull(Type.Integer()), description: 'HTTP status of the provider' },
})

/** Hosts in the order of calls. Without weights all requests begin at the first one. */
const hostChoicesSchema = Type.Array(
  strictObject({
    host: Type.String({ minLength: 1, maxLength: 32, description: 'ID of the provider' }),
    weight: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: highestWeight,
        description: 'share of the requests that begin at this host; 1 unless sent, if another host has one',
      }),
    ),
  }),
  { minItems: 1, maxItems: 32 },
)

export const modelSwitchShape = namedSchema('ModelSwitch', {
  model: modelName,
  display_name: text('GPT-5.5'),
  enabled: Type.Boolean({ description: 'false = no account can list or call it, and routing does not choose it' }),
  used_by: Type.Array(text('enhancement.model'), {
    description: 'settings of the configuration that name it, which do nothing while it is off',
  }),
  configured_hosts: Type.Array(text('openai'), { description: 'hosts in the order of the configuration' }),
  hosts: {
    ...orNull(hostChoicesSchema),
    description: 'hosts in the order of calls; null = as configured. Hosts that it does not name come last.',
  },
})
export const modelSwitchesShape = list(modelSwitchShape)
export type ShownModelSwitch = Static<typeof modelSwitchShape>

export const modelSwitchChangeSchema = strictObject({
  model: Type.String({ minLength: 1, maxLength: maximumNameCharacters, description: '`provider/model`' }),
  enabled: Type.Optional(Type.Boolean()),
  hosts: Type.Optional(orNull(hostChoicesSchema)),
})
