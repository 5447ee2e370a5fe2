/**
 * Refuses references in a body that goes to a provider of the same form. Files, containers, stores and skills by ID are those of the
 * operator's account there. Addresses are vetted, because the provider fetches them.
 */
import { forwardableAddress } from '../core/validation/public-address.ts'
import { invalidField } from '../core/validation/validate.ts'
import { type Fields, isFields } from './check.ts'

/** Fields that name an object of the provider's account, at any depth. */
const objectFields: ReadonlySet<string> = new Set(
  'file_id file_ids container container_id vector_store_id vector_store_ids skill_id tunnel_id'.split(' '),
)
/** Fields with an address that the provider fetches, and whether it may be a `data:` URL. */
const addressFields: ReadonlyMap<string, boolean> = new Map([
  ['server_url', false],
  ['image_url', true],
  ['file_url', true],
])
/** Fields whose values the client chooses: schemas, arguments, labels. No provider looks for an object in them. */
const ownFields: ReadonlySet<string> = new Set(
  'parameters input_schema output_schema schema arguments metadata client_metadata input_examples env headers'.split(
    ' ',
  ),
)
const checkedFields: ReadonlySet<string> = new Set([...objectFields, ...addressFields.keys(), 'url', 'id'])
/** Results of Anthropic's code execution name the files that it wrote. In a later turn the name is only a text. */
const resultTypes: ReadonlySet<unknown> = new Set(['code_execution_output', 'bash_code_execution_output'])

/** Throws `unsupported_parameter` or `invalid_request` with the field at fault. Iterative, because a body may be deep. */
export function refuseForeignObjects(body: Fields): void {
  for (const [param, given] of Object.entries(body)) {
    if (ownFields.has(param) || !isContainer(given)) continue
    const open: object[] = [given]
    for (let value = open.pop(); value !== undefined; value = open.pop()) {
      if (Array.isArray(value)) for (const inner of value) if (isContainer(inner)) open.push(inner)
      if (isFields(value)) openMembers(value, param, open)
    }
  }
}

/** A loop over the names: a list of them per object would take most of the time. */
function openMembers(fields: Fields, param: string, open: object[]): void {
  for (const name in fields) {
    const value = fields[name]
    if (value == null) continue
    if (checkedFields.has(name)) checkField(fields, name, `${param}.${name}`)
    if (isContainer(value) && !isOwnField(fields, name)) open.push(value)
  }
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

function isOwnField({ type }: Fields, name: string): boolean {
  return ownFields.has(name) || (name === 'input' && typeof type === 'string' && type.endsWith('tool_use'))
}

function checkField(fields: Fields, name: string, param: string): void {
  const { [name]: value, type } = fields
  const isResult = name === 'file_id' && resultTypes.has(type)
  if (objectFields.has(name) && !isResult) throw storedObject(param)
  // OpenAI finds an image without its data by the ID.
  if (name === 'id' && type === 'image_generation_call' && typeof fields.result !== 'string') throw storedObject(param)
  const mayBeData = addressFields.get(name) ?? (name === 'url' && type === 'url' ? false : null)
  if (mayBeData === null || typeof value !== 'string') return
  const address = forwardableAddress(value)
  if (address === null || (!mayBeData && /^data:/i.test(address)))
    throw invalidField(param, 'must be a public http or https URL on port 80 or 443 without credentials')
}

function storedObject(param: string) {
  return invalidField(
    param,
    'refers to a stored object. Objects are not stored here: send the content itself',
    'unsupported_parameter',
  )
}
