/**
 * What a route says of itself: the schemas that check what it takes and type what it answers, and the refusals that are its
 * own. The API reference (`routes/reference`) is nothing but the route table read aloud.
 */
import type { TObject, TProperties, TSchema } from '@sinclair/typebox'
import type { ErrorCode } from '../core/validation/errors.ts'
import { refuseForeignPage } from './pages.ts'
import type { Policy } from './policies.ts'

export type RouteDocs = {
  readonly summary: string
  readonly description?: string
  /** The JSON body it takes. */
  readonly body?: TSchema
  /** Bodies that work as they stand, by a name that says what each is for. Every one of them is sent by a test. */
  readonly examples?: Readonly<Record<string, object>>
  /** False where an absent body counts as an empty object. */
  readonly bodyRequired?: boolean
  readonly query?: TObject<TProperties>
  /** Headers of a request that change what is done, by name. */
  readonly requestHeaders?: Readonly<Record<string, TSchema>>
  /** What a success answers as JSON; null = 204, without a body. */
  readonly answer: TSchema | null
  readonly status?: 200 | 201 | 202
  /** Further media types of a success, by name. */
  readonly alsoAs?: Readonly<Record<string, TSchema>>
  /** What ends a stream after its last event, where that is no event itself. */
  readonly streamEnd?: string
  /** Answers that are neither a success nor a refusal, by status. */
  readonly alsoWith?: Readonly<Record<number, TSchema>>
  /** Headers of a success beside those that every answer has, by name. */
  readonly answerHeaders?: readonly AnswerHeader[]
  /** True where a client that holds the answer already gets a 304. */
  readonly isTagged?: boolean
  /** Refusals of its own, beside those that any route of its policy may have. */
  readonly errors?: readonly ErrorCode[]
  /** The form of its refusals, where that is not the API's own. */
  readonly refusals?: { readonly shape: TSchema; readonly statusOf: (code: ErrorCode) => number }
}

/** Headers of answers that a route may name. */
export type AnswerHeader = 'served' | 'cost' | 'estimated' | 'standing' | 'deprecation' | 'download'

/** The route's hook: its policy, what enforces it against other origins' pages, and what it says of itself. */
export function withRouteDocs(policy: Policy, route: RouteDocs) {
  const reference = { 'x-reference': route }
  return {
    detail: { summary: route.summary, ...policy, ...reference },
    beforeHandle: policy['x-pages'] === 'any' ? [] : [refuseForeignPage],
  }
}
