/**
 * Decides which URLs may be fetched for a client: only the public web on its two ports. Checked twice: the text
 * (`checkUrl`) before any network access, and the resolved address (`isPublicAddress`), which is also the one that is
 * dialed. The operator's own firewall is a further layer.
 */
export { type AllowedUrl, checkUrl, isPublicAddress } from '../core/validation/public-address.ts'
