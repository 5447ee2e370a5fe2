/** Applies the rules of the operator and of the account to the name that a request gives, before its model is chosen. */
import type { ChatRequest } from '../../core/chat/chat.ts'
import type { Caller } from '../../core/limits/plans.ts'
import { autoModel } from '../../core/models/models.ts'
import { applyRules, type Rule, type RuleSubject } from '../../core/policy/rules.ts'
import { findTags } from '../../core/request/tags.ts'
import { nameConversation } from '../../learning/cache-affinity.ts'
import { estimateInputTokens } from '../../text/tokens/tokens.ts'

type Names<M> = { resolve(name: string): M | null; findDisabled?(name: string): M | null }
type NamedModel = { readonly id: string; readonly provider: string }

/** Headers of the client's request. */
export type RuleHeaders = Pick<Headers, 'get'>

export type RulesDeps = {
  /** The operator's rules, which a reload replaces. Absent = none. */
  readonly rules?: { readonly operator: readonly Rule[] }
  readonly catalog: Names<NamedModel>
  readonly embeddingCatalog?: Names<NamedModel>
}

/**
 * Returns the request with the model that the rules choose, and with their effects. Rules of the account act first, so
 * that those of the operator judge their result. Throws `forbidden` if a rule denies the request.
 */
export function underRules(
  deps: RulesDeps,
  caller: Caller,
  request: ChatRequest,
  headers: RuleHeaders | undefined,
): ChatRequest {
  let tokens: number | null = null
  const { keyId, lineageId = keyId } = caller
  const subject: RuleSubject = {
    accountId: caller.accountId,
    keyIds: [keyId, lineageId],
    projectId: caller.projectId,
    tags: findTags(caller, request),
    findHeader: name => headers?.get(name) ?? null,
    countTokens: () => (tokens ??= estimateInputTokens(request)),
    draw: ({ name, owner }) => drawPercent(`${owner} ${name} ${nameParty(caller, request)}`),
    resolve: name => resolveModel(deps, name),
  }
  const rules = [...(caller.rules ?? []), ...(deps.rules?.operator ?? [])]
  const { model, effects } = applyRules(rules, subject, request.model ?? autoModel)
  if (effects.acted === null && effects.denials.length === 0) return request
  const isAutomatic = model.toLowerCase() === autoModel
  return { ...request, model: isAutomatic ? null : model, rules: effects }
}

/** Finds a model of any kind by any of its names, also one that is switched off. */
export function resolveModel({ catalog, embeddingCatalog }: RulesDeps, name: string): NamedModel | null {
  for (const names of [catalog, embeddingCatalog]) {
    const model = names?.resolve(name) ?? names?.findDisabled?.(name) ?? null
    if (model !== null) return model
  }
  return null
}

/** The user and the conversation, so that neither a conversation nor a user without one changes sides. */
function nameParty({ accountId, keyId }: Caller, request: ChatRequest): string {
  return `${accountId} ${request.endUser ?? keyId} ${nameConversation(request)}`
}

/** Returns a number from 0 to below 100 that is even over all texts and the same in every process. */
function drawPercent(text: string): number {
  return (new DataView(Bun.SHA256.hash(text).buffer).getUint32(0) / 2 ** 32) * 100
}
