/** Checks the model that a request names: that it exists, is not retired, and supports the request. */

import type { EmbeddingCatalog } from '../../core/models/embedding-models.ts'
import {
  autoModel,
  type Catalog,
  deprecationOf,
  fullName,
  type Model,
  type Unmet,
  unmet,
} from '../../core/models/models.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { isModelAllowed, modelNotAllowed } from '../../models/allowed-models.ts'
import type { RouteRequest } from './route-request.ts'
import { embeddingModelInChat, unknownModel } from './routing-errors.ts'

/** Finds the named model. Throws `model_not_found`, `forbidden`, `model_deprecated`, `unsupported_parameter` or `invalid_request`. */
export function findNamedModel(
  {
    catalogue,
    embeddingCatalog,
  }: { readonly catalogue: Catalog; readonly embeddingCatalog?: Pick<EmbeddingCatalog, 'resolve'> },
  { ask, caller, needs, today }: RouteRequest,
  name: string,
): Model {
  const model = catalogue.resolve(name)
  if (model === null)
    throw (
      (embeddingCatalog === undefined ? null : embeddingModelInChat(embeddingCatalog, name)) ??
      unknownModel(catalogue, name)
    )
  if (caller.models !== undefined && !isModelAllowed(caller.models, fullName(model)))
    throw modelNotAllowed(caller.models)
  if (deprecationOf(model, today) === 'retired') {
    const advice = model.successor === null ? 'Choose another one' : `Use ${model.successor} instead`
    const message = `${fullName(model)} was retired on ${model.deprecationDate}. ${advice}.`
    throw new GatewayError('model_deprecated', message, { param: 'model' })
  }
  refuseUnmet(model, unmet(model, needs))
  // A less capable fallback is better than none, so only the named model itself is checked. Messages requires a cap, so
  // its clients send one that does not consider the model: it is lowered.
  if (ask.dialect !== 'messages' && (ask.maxOutputTokens ?? 0) > model.maxOutputTokens) {
    const message = `\`max_output_tokens\` must be at most ${model.maxOutputTokens} for ${fullName(model)}.`
    throw new GatewayError('invalid_request', message, { param: 'max_output_tokens' })
  }
  return model
}

/** Throws `unsupported_parameter` if the named model lacks a required capability. */
export function refuseUnmet(model: Model, lacking: Unmet | null): void {
  if (lacking === null) return
  const message = `${fullName(model)} does not support ${lacking.what}. Remove it or choose another model.`
  throw new GatewayError('unsupported_parameter', message, { param: lacking.param })
}

type RoutedModel = {
  readonly mode: 'auto' | 'manual'
  readonly first: { readonly model: Pick<Model, 'id' | 'provider'> }
}

/** Returns the model that a request named, or the name of automatic routing. */
export function requestedModel({ mode, first }: RoutedModel): string {
  return mode === 'manual' ? fullName(first.model) : autoModel
}
