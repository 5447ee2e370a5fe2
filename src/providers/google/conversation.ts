import type { Message, ReasoningItem, ToolCall } from '../../core/chat/chat.ts'
import type { ParameterRules } from '../../core/models/models.ts'
import { placeholderTexts, type ToolExchange, turnsOf } from '../conversation-steps.ts'
import { inlineImage } from '../images.ts'
import { type Json, objectIn } from '../json.ts'

/** Returns the conversation in the wire format, without system texts. */
export function contentsFor(messages: readonly Message[], { prefill, reasoning }: ParameterRules): readonly Json[] {
  const turns = turnsOf<Json>(messages, prefill, {
    text: text => ({ text }),
    said: (text, reasoning) => ({ text, thoughtSignature: textSignature(reasoning) }),
    image: imagePart,
    file: ({ url }) => ({ inlineData: { mimeType: 'application/pdf', data: inlineImage(url)?.data ?? '' } }),
    exchange: ({ call, result }, position) => {
      const { id, name } = call
      const thoughtSignature = signatureOf(call, position === 0 && reasoning.kind === 'level')
      return [
        { functionCall: { id, name, args: objectIn(call.arguments) ?? {} }, thoughtSignature },
        { functionResponse: { id, name, response: responseOf(result) } },
      ]
    },
  })
  return turns.map(({ role, parts }) => ({ role: role === 'assistant' ? 'model' : role, parts }))
}

const base64 = /^[A-Za-z0-9+/_-]+={0,2}$/

/**
 * Returns the signature of a call. Models with reasoning levels require it on the first call of a step. If the client
 * lost it, a documented placeholder is sent; client text that is not base64 would cause a 400.
 */
function signatureOf({ signature }: ToolCall, needed: boolean): string | undefined {
  if (signature !== null && base64.test(signature)) return signature
  return needed ? 'skip_thought_signature_validator' : undefined
}

/** What the text of an earlier turn was signed with. */
function textSignature(reasoning: readonly ReasoningItem[]): string | undefined {
  const signed = reasoning.findLast(({ family, id }) => family === 'google' && id === null)
  return signed !== undefined && base64.test(signed.data) ? signed.data : undefined
}

function responseOf(result: ToolExchange['result']): Json {
  if (result === null) return { error: placeholderTexts.missingResult }
  // Numbers become doubles on this wire: a result with longer ones (mostly IDs) stays text.
  return (/\d{16}/.test(result) ? null : objectIn(result)) ?? { result }
}

function imagePart(url: string): Json {
  const image = inlineImage(url)
  if (image === null) return { fileData: { mimeType: kindByExtension(url), fileUri: url } }
  const data = image.isBase64 ? image.data : percentToBase64(image.data)
  return { inlineData: { mimeType: image.kind || 'image/jpeg', data } }
}

/** Not `decodeURIComponent`, which throws on bytes that are not UTF-8, as images usually are. */
function percentToBase64(text: string): string {
  const bytes = text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString('base64')
}

/** Returns the required media type of an image URL: by its extension, else the most common one. */
function kindByExtension(url: string): string {
  const extension = /\.(png|webp|gif|heic|heif)(?:[?#]|$)/i.exec(url)?.[1]
  return `image/${extension?.toLowerCase() ?? 'jpeg'}`
}
