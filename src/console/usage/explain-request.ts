/** Explains how a request ended: which part of the gateway decided, and what its client can do next. */
import type { AttemptFailure, AttemptSkip } from '../../core/chat/attempts.ts'
import { rulesLayer } from '../../core/policy/rules.ts'
import { type ErrorCode, errorTable } from '../../core/validation/errors.ts'
import explanations from './explanations.json'

export const deciders = [
  'limit',
  'billing',
  'moderation',
  'validation',
  'routing',
  'provider',
  'gateway',
  'client',
] as const
/** The part of the path that ended a request. */
type Decider = (typeof deciders)[number]

type RequestExplanation = {
  /** Null = nothing prevented the request. */
  readonly decidedBy: Decider | null
  readonly summary: string
  /** Null = nothing to do. */
  readonly nextStep: string | null
}

type Ended = {
  readonly status: 'completed' | 'failed' | 'client_closed' | 'blocked' | 'rejected'
  readonly errorCode: string | null
  readonly layer: string | null
  readonly category: string | null
  readonly param: string | null
  /** Kind of the value of `param`, in words; null = unknown. */
  readonly sent: string | null
  /** Values that `param` accepts, in words; null = unknown. */
  readonly accepted: string | null
  /** The limit that was reached, such as `key.requests_per_minute`; null = none, or unknown. */
  readonly limit: string | null
  readonly finishReason: string | null
  /** Failures of its attempts in order. */
  readonly causes: readonly AttemptFailure[]
  /** Part of the output was sent before the failure. */
  readonly isTruncated: boolean
}

/** Explains the end of one request. */
export function explainRequest(ended: Ended): RequestExplanation {
  const { status, causes } = ended
  if (status === 'completed') {
    const failed =
      causes.length === 0 ? '' : ` after ${causes.length} failed ${causes.length === 1 ? 'attempt' : 'attempts'}`
    return { decidedBy: null, summary: `The request completed${failed}.${getEnd(ended)}`, nextStep: stepAfter(ended) }
  }
  if (status === 'client_closed')
    return {
      decidedBy: 'client',
      summary: 'The client closed the connection before the end.',
      nextStep: 'If this was not intended, raise the timeout of the client or stream the response.',
    }
  const code = isErrorCode(ended.errorCode) ? ended.errorCode : null
  if (code === null) return unknown
  return explained(code, ended)
}

/** Why the output ended early; empty = it did not. */
function getEnd({ finishReason, layer, category }: Ended): string {
  if (finishReason === 'length') return ' Its output ended at the output limit.'
  if (finishReason !== 'content_filter') return ''
  if (layer === null || layer === 'provider') return ' The content filter of the provider ended the output.'
  return ` The moderation layer \`${layer}\`${inCategory(category)} ended the output.`
}

const falseAlarm = 'Change the prompt. If this is a false alarm, ask the operator to adjust the moderation settings.'

function stepAfter({ finishReason, layer }: Ended): string | null {
  if (finishReason === 'length') return 'Raise the output limit, such as `max_output_tokens`, for a longer output.'
  if (finishReason !== 'content_filter') return null
  return layer === null || layer === 'provider' ? 'Change the prompt, or use a model of another provider.' : falseAlarm
}

const unknown: RequestExplanation = {
  decidedBy: 'gateway',
  summary: 'The request failed.',
  nextStep: 'Give the request ID to the operator of this gateway.',
}

function isErrorCode(code: string | null): code is ErrorCode {
  return code !== null && Object.hasOwn(errorTable, code)
}

function explained(code: ErrorCode, ended: Ended): RequestExplanation {
  const row = getRow(code, ended)
  if (code === 'content_blocked' && ended.layer !== null) return blocked(ended.layer, ended.category)
  if (code === 'constraints_unmet')
    return {
      decidedBy: 'routing',
      summary: `No host meets the constraint \`${ended.category ?? ''}\` of the request, its key, its project or its account.`,
      nextStep: row.nextStep,
    }
  if (ended.layer === rulesLayer)
    return {
      decidedBy: 'routing',
      summary: `The rule \`${ended.category ?? ''}\` denied the request.`,
      nextStep: 'Request another model, or ask the operator or an owner of the account to change the rule.',
    }
  const last = ended.causes.at(-1)
  // After a failed attempt the provider decided, whatever the code.
  const cause = last === undefined || row.decidedBy === 'gateway' ? null : causeTexts[last]
  const told = cause === null || last === sameCause[code] ? '' : ` Last cause: ${cause.text}.`
  const field = ended.param === null || isModelForbidden(code, ended.param) ? '' : fieldText(ended.param, ended)
  const owner = ended.limit === null ? null : limitOwner(ended.limit)
  const truncated = ended.isTruncated ? ' The client received part of the output.' : ''
  return {
    decidedBy: cause === null ? row.decidedBy : 'provider',
    summary: `${row.summary}${owner === null ? '' : ` This is a limit of ${owner.name}.`}${told}${field}${truncated}`,
    nextStep: `${cause?.nextStep ?? row.nextStep}${owner === null ? '' : ` ${owner.setBy}`}`,
  }
}

function fieldText(param: string, { sent, accepted }: Ended): string {
  const was = sent === null ? '' : sent === 'nothing' ? ', which was not sent' : `, sent as ${sent}`
  const inside = sent === 'an array' || sent === 'an object' ? ' The invalid part can be inside it.' : ''
  return ` The error names \`${param}\`${was}.${accepted === null ? '' : ` It accepts ${accepted.replace(/\.$/, '')}.`}${inside}`
}

/** Causes that only repeat the summary of their code. */
const sameCause: Partial<Record<ErrorCode, AttemptFailure>> = {
  context_length_exceeded: 'context_overflow',
  content_blocked: 'content_filtered',
}

function getRow(code: ErrorCode, { param, causes }: Ended): Row {
  const { modelForbidden, attachmentsUnsupported, requestTimedOut } = explanations.special
  const decidedBy = findDecider(code)
  if (isModelForbidden(code, param)) return { decidedBy, ...modelForbidden }
  if (code === 'unsupported_parameter' && param === 'messages') return { decidedBy, ...attachmentsUnsupported }
  // No attempt failed: the timeout of the request ended a running one.
  if (code === 'upstream_timeout' && causes.length === 0) return { decidedBy, ...requestTimedOut }
  return { decidedBy, ...codeTexts[code] }
}

const isModelForbidden = (code: ErrorCode, param: string | null) => code === 'forbidden' && param === 'model'

/** Returns whose limit it is, and where it is set. `limit` is `account.…`, `key.…`, `project.…` or `tag:name=value.…`. */
function limitOwner(limit: string): { readonly name: string; readonly setBy: string } | null {
  const owner = limit.slice(0, limit.lastIndexOf('.'))
  if (owner === 'account')
    return { name: 'the account', setBy: 'The plan and the operator set the limits of an account.' }
  if (owner === 'key') return { name: 'the API key', setBy: 'The limits of a key are on the Keys page.' }
  if (owner === 'project')
    return { name: 'the project', setBy: 'An owner or admin of the account sets the limits of a project.' }
  if (!owner.startsWith('tag:')) return null
  return { name: `the tag \`${owner.slice(4)}\``, setBy: 'An admin of the account sets the limits of tags.' }
}

const inCategory = (category: string | null) =>
  category === null || category === '' ? '' : ` (category \`${category}\`)`

function blocked(layer: string, category: string | null): RequestExplanation {
  if (layer === 'provider')
    return {
      decidedBy: 'provider',
      summary: 'The content filter of the provider blocked the request.',
      nextStep: 'Change the prompt, or use a model of another provider.',
    }
  return {
    decidedBy: 'moderation',
    summary: `The moderation layer \`${layer}\`${inCategory(category)} blocked the request.`,
    nextStep: falseAlarm,
  }
}

type Row = { readonly decidedBy: Decider; readonly summary: string; readonly nextStep: string }

/** Texts of each error code, by the part that decided. */
const { limit, billing, moderation, validation, routing, provider, gateway } = explanations.codes
const codeTexts: Readonly<Record<ErrorCode, Omit<Row, 'decidedBy'>>> = {
  ...limit,
  ...billing,
  ...moderation,
  ...validation,
  ...routing,
  ...provider,
  ...gateway,
}

const findDecider = (code: ErrorCode): Decider =>
  deciders.find(decider => decider !== 'client' && Object.hasOwn(explanations.codes[decider], code)) ?? 'gateway'

/** Texts for the outcomes of attempts: why one failed, and why a candidate was not called. */

type Cause = { readonly text: string; readonly nextStep: string | null }

const causeTexts: Readonly<Record<AttemptFailure, Cause>> = explanations.causes

const skipTexts: Readonly<Record<AttemptSkip, string>> = explanations.skips

/** Returns why a candidate was not called, as a phrase. */
export function skipCause(reason: string): string {
  return Object.hasOwn(skipTexts, reason) ? skipTexts[reason as AttemptSkip] : 'unknown reason'
}

/** Returns the cause of an attempt as a phrase; null = it served. */
export function attemptCause(outcome: string): string | null {
  return Object.hasOwn(causeTexts, outcome) ? causeTexts[outcome as AttemptFailure].text : null
}
