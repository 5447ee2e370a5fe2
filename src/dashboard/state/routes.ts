/** Response types of the API's routes, from the API's own schemas. */
import type { Static } from '@sinclair/typebox'
import type { AccountToday } from '../../console/account/schemas.ts'
import type { alertShape, alertsShape, testedAlertShape } from '../../console/alerts/schemas.ts'
import type { auditListShape } from '../../console/audit/schemas.ts'
import type * as auth from '../../console/auth/schemas.ts'
import type * as billing from '../../console/billing/schemas.ts'
import type { learningShape, ratedShape, shadowReportShape } from '../../console/insights/schemas.ts'
import type { newKeyShape, ShownKey, ShownKeyPage } from '../../console/keys/schemas.ts'
import type { newManagementKeyShape, ShownManagementKey } from '../../console/management-keys/schemas.ts'
import type { ShownProject } from '../../console/projects/schemas.ts'
import type * as providers from '../../console/provider-keys/schemas.ts'
import type { ShownStatus } from '../../console/status/schemas.ts'
import type { newInvitationShape, ShownTeam } from '../../console/team/schemas.ts'
import type { RequestRecord, requestListShape, ShownUsage } from '../../console/usage/schemas.ts'
import type * as webhooks from '../../console/webhooks/schemas.ts'
import type { ModelHealth, modelHealthListShape, modelListShape } from '../../dialects/models/schemas.ts'
import type { errorShape, ShownSignIn, ShownTag, ShownUser } from '../../http/schemas.ts'
import type { Health, Ready } from '../../observability/probes.ts'

type List<T> = { readonly data: readonly T[] }

export type ManagementKey = ShownManagementKey
export type NewKey = Static<typeof newKeyShape>
export type CreatedInvitation = Static<typeof newInvitationShape>
type RequestList = Static<typeof requestListShape>
export type Learning = Static<typeof learningShape>
export type Confidence = Learning['state']
export type { ModelHealth }
export type ErrorBody = Static<typeof errorShape>

export type Routes = {
  'GET /healthz': Health
  'GET /readyz': Ready
  'GET /api/v1/status': ShownStatus
  'GET /api/v1/auth/registration': auth.RegistrationRules
  'POST /api/v1/auth/register': ShownSignIn
  'POST /api/v1/auth/verify/:token': ShownSignIn
  'POST /api/v1/auth/verification': Static<typeof auth.resetAskedShape>
  'POST /api/v1/auth/login': ShownSignIn
  'POST /api/v1/auth/oidc/session': ShownSignIn
  'GET /api/v1/auth/oidc/settings': auth.SingleSignOnSettings
  'POST /api/v1/auth/refresh': ShownSignIn
  'POST /api/v1/auth/logout': null
  'POST /api/v1/auth/reset': Static<typeof auth.resetAskedShape>
  'POST /api/v1/auth/reset/:token': null
  'GET /api/v1/auth/sessions': List<auth.ShownSession>
  'GET /api/v1/auth/two-factor': auth.TwoFactorState
  'POST /api/v1/auth/two-factor': auth.TwoFactorSetup
  'POST /api/v1/auth/two-factor/confirm': Static<typeof auth.recoveryCodesShape>
  'POST /api/v1/auth/two-factor/disable': null
  'DELETE /api/v1/auth/sessions/:id': null
  'PUT /api/v1/auth/password': null
  'GET /api/v1/account': AccountToday
  'PATCH /api/v1/account': AccountToday
  'DELETE /api/v1/account': null
  'GET /api/v1/keys': List<ShownKey>
  'GET /api/v1/management-keys': List<ShownManagementKey>
  'POST /api/v1/management-keys': Static<typeof newManagementKeyShape>
  'DELETE /api/v1/management-keys/:id': null
  'GET /api/v1/keys/:id': ShownKeyPage
  'POST /api/v1/keys': NewKey
  'PATCH /api/v1/keys/:id': ShownKey
  'POST /api/v1/keys/:id/rotate': NewKey
  'DELETE /api/v1/keys/:id': null
  'GET /api/v1/projects': List<ShownProject>
  'GET /api/v1/projects/:id': ShownProject
  'POST /api/v1/projects': ShownProject
  'PATCH /api/v1/projects/:id': ShownProject
  'DELETE /api/v1/projects/:id': null
  'PUT /api/v1/projects/:id/members/:user': ShownProject
  'DELETE /api/v1/projects/:id/members/:user': null
  'GET /api/v1/team': ShownTeam
  'POST /api/v1/team/invitations': CreatedInvitation
  'POST /api/v1/team/invitations/:token/accept': ShownSignIn
  'DELETE /api/v1/team/invitations/:id': null
  'PATCH /api/v1/team/:id': ShownUser
  'DELETE /api/v1/team/:id': null
  'GET /api/v1/tags': List<ShownTag>
  'PUT /api/v1/tags': ShownTag
  'GET /api/v1/audit': Static<typeof auditListShape>
  'GET /api/v1/alerts': Static<typeof alertsShape>
  'POST /api/v1/alerts': Static<typeof alertShape>
  'PATCH /api/v1/alerts/:id': Static<typeof alertShape>
  'DELETE /api/v1/alerts/:id': null
  'POST /api/v1/alerts/:id/test': Static<typeof testedAlertShape>
  'GET /api/v1/webhooks': Static<typeof webhooks.webhooksShape>
  'POST /api/v1/webhooks': Static<typeof webhooks.newWebhookShape>
  'PATCH /api/v1/webhooks/:id': Static<typeof webhooks.webhookShape>
  'DELETE /api/v1/webhooks/:id': null
  'POST /api/v1/webhooks/:id/rotate': Static<typeof webhooks.newWebhookShape>
  'POST /api/v1/webhooks/:id/test': Static<typeof webhooks.testedShape>
  'GET /api/v1/webhooks/:id/deliveries': Static<typeof webhooks.deliveriesShape>
  'POST /api/v1/webhooks/:id/deliveries/:delivery/redeliver': Static<typeof webhooks.testedShape>
  'GET /api/v1/usage': ShownUsage
  'GET /api/v1/requests': RequestList
  'GET /api/v1/requests/:id': RequestRecord
  'GET /api/v1/billing': billing.ShownBilling
  'POST /api/v1/billing/upgrade': billing.ShownBilling
  'POST /api/v1/billing/downgrade': billing.ShownBilling
  'PUT /api/v1/billing/payment-method': billing.ShownBilling
  'DELETE /api/v1/billing/payment-method': null
  'POST /api/v1/billing/payment-method/setup': Static<typeof billing.pageShape>
  'PUT /api/v1/billing/soft-cap': billing.ShownBilling
  'GET /api/v1/billing/invoices': List<billing.ShownInvoice>
  'GET /api/v1/billing/invoices/:id': Static<typeof billing.invoiceWithLinesShape>
  'GET /api/v1/billing/invoices/:id/breakdown': billing.ShownBreakdown
  'POST /api/v1/billing/invoices/:id/payment-page': Static<typeof billing.pageShape>
  'GET /api/v1/models': Static<typeof modelListShape>
  'GET /api/v1/providers': Static<typeof providers.providerListShape>
  'POST /api/v1/providers/:id/test': Static<typeof providers.providerTestedShape>
  'GET /api/v1/provider-keys': List<providers.ShownProviderKey>
  'POST /api/v1/provider-keys': providers.ShownProviderKey
  'PATCH /api/v1/provider-keys/:id': providers.ShownProviderKey
  'POST /api/v1/provider-keys/:id/test': Static<typeof providers.providerTestedShape>
  'POST /api/v1/provider-keys/:id/rotate': providers.ShownProviderKey
  'DELETE /api/v1/provider-keys/:id': null
  'GET /api/v1/model-switches': Static<typeof providers.modelSwitchesShape>
  'PATCH /api/v1/model-switches': providers.ShownModelSwitch
  'GET /api/v1/models/health': Static<typeof modelHealthListShape>
  'GET /api/v1/insights/learning': Learning
  'GET /api/v1/insights/shadow': Static<typeof shadowReportShape>
  'POST /api/v1/insights/feedback': Static<typeof ratedShape>
  'DELETE /api/v1/insights/data': null
}

export type ApiRoute = keyof Routes
export type ReadRoute = Extract<ApiRoute, `GET ${string}`>
