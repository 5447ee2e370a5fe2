/** Texts for the outcomes of attempts: why one failed, and why a candidate was not called. */
import type { AttemptFailure, AttemptSkip } from '../chat/attempts.ts'

type Cause = { readonly text: string; readonly nextStep?: string }

export const causeTexts: Readonly<Record<AttemptFailure, Cause>> = {
  rate_limited: { text: 'the provider is at its rate limit' },
  quota_exhausted: {
    text: 'the quota of the provider account is used up',
    nextStep: 'The operator has to add credit at the provider, or another key.',
  },
  overloaded: { text: 'the provider is overloaded' },
  unavailable: { text: 'the provider failed with a server error' },
  credential_refused: {
    text: 'the provider rejected the credential of the gateway',
    nextStep: 'The operator has to replace the key of this provider.',
  },
  model_missing: {
    text: 'the provider does not offer the model',
    nextStep: 'The operator has to check the access of the provider key to this model.',
  },
  context_overflow: { text: 'the conversation exceeds the context window of the model' },
  content_filtered: { text: 'the content filter of the provider blocked the request' },
  request_refused: {
    text: 'the provider rejected the request as invalid',
    nextStep: "Check the parameters in the provider's documentation.",
  },
  request_too_large: { text: 'the request is larger than the provider accepts' },
  timeout: { text: 'the provider did not respond before its deadline' },
  connection_failed: {
    text: 'the connection to the provider failed',
    nextStep: 'Send the request again. If it persists, the operator has to check the network and the provider address.',
  },
  bad_answer: { text: 'the response of the provider was not valid' },
  truncated: { text: 'the provider closed the connection before its response was complete' },
  empty_answer: { text: 'the model returned no output' },
  no_tool_call: {
    text: 'the model did not make the tool call that the request requires',
    nextStep: 'Choose another model, or an automatic `tool_choice`.',
  },
  generation_failed: { text: 'the provider reported an error while generating' },
}

const skipTexts: Readonly<Record<AttemptSkip, string>> = {
  skipped_over_budget: 'its cost is above the remaining daily limit',
  skipped_circuit_open: 'it is unhealthy: its circuit breaker is open after failures',
  skipped_cooldown: 'it is in a cooldown after a failure',
  skipped_provider_disabled: 'its provider rejected the credential of the gateway before',
  skipped_retry_budget: 'the retry budget of the gateway was used up',
  skipped_rate_limit: 'its keys have no capacity left',
}

/** Returns why a candidate was not called, as a phrase. */
export function skipCause(reason: string): string {
  return Object.hasOwn(skipTexts, reason) ? skipTexts[reason as AttemptSkip] : 'unknown reason'
}

/** Returns the cause of an attempt as a phrase; null = it served. */
export function attemptCause(outcome: string): string | null {
  return Object.hasOwn(causeTexts, outcome) ? causeTexts[outcome as AttemptFailure].text : null
}
