import { fullName, type Model } from '../../core/models/models.ts'

/** Health is kept per provider, model and credential; a configured provider has one credential. */
export function healthKey({ model }: { readonly model: Pick<Model, 'id' | 'provider'> }): string {
  return fullName(model)
}
