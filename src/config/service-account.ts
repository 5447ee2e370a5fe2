/** Reads the key file of a Google service account. */
import { createPrivateKey } from 'node:crypto'
import type { ServiceAccount } from '../credentials/credential-cache.ts'
import { baseUrlProblem } from './addresses.ts'

/** Returns the account and its project; null = it is unusable. Reports problems without the file's content. */
export function parseServiceAccount(
  text: string,
  problem: (text: string) => void,
): { readonly account: ServiceAccount; readonly project: string | null } | null {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    problem('the service account is not valid JSON')
    return null
  }
  const fields: Readonly<Record<string, unknown>> = typeof parsed === 'object' && parsed !== null ? { ...parsed } : {}
  const getText = (name: string) => (typeof fields[name] === 'string' ? fields[name] : '')
  const [clientEmail, privateKey] = [getText('client_email'), getText('private_key')]
  if (fields.type !== 'service_account' || clientEmail === '' || privateKey === '') {
    problem('the service account needs "type": "service_account", `client_email` and `private_key`')
    return null
  }
  const tokenUrl = getText('token_uri') || 'https://oauth2.googleapis.com/token'
  const wrong = baseUrlProblem(tokenUrl)
  if (wrong !== null) problem(`the service account: token_uri ${wrong}`)
  if (!isPrivateKey(privateKey)) problem('the service account: private_key is not a private key in PEM')
  const privateKeyId = getText('private_key_id') || null
  return { account: { clientEmail, privateKey, privateKeyId, tokenUrl }, project: getText('project_id') || null }
}

function isPrivateKey(pem: string): boolean {
  try {
    return createPrivateKey(pem).asymmetricKeyType === 'rsa'
  } catch {
    return false
  }
}
