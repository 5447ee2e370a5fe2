/**
 * Which addresses may be fetched for a caller: the public web on its two ports, and nothing else. Judged twice: what is
 * written (`checkUrl`), before anything is asked of anybody, and what a name resolves to (`isPublicAddress`), which is
 * also what is then dialled. The operator's own firewall stands behind it.
 */
export { type AllowedUrl, checkUrl, isPublicAddress } from '../core/validation/public-address.ts'
