import type { SingleSignOnSettings } from '../../console/auth/schemas.ts'
import { Button, Snippet } from '../parts/controls.tsx'
import { Badge, Empty, Loaded, Notice } from '../parts/notice.tsx'
import { Card, Pairs } from '../parts/page.tsx'
import { listTime, relativeTime } from '../state/format.ts'
import { useResource } from '../state/resource.ts'

type Shown = NonNullable<SingleSignOnSettings['single_sign_on']>

/** Single sign-on as the configuration of the gateway has it. Only the operator can change it. */
export function SingleSignOnCard() {
  const settings = useResource('GET /api/v1/auth/oidc/settings')
  return (
    <Card
      title="Single sign-on"
      about="Read-only: the operator sets the OIDC_ variables of the gateway and restarts it."
      actions={
        settings.data?.single_sign_on && (
          <a class="button" href="/api/v1/auth/oidc/start?test=true">
            Test sign-in
          </a>
        )
      }
    >
      <Loaded resource={settings} what="single sign-on" lines={5}>
        {({ single_sign_on: found }) =>
          found === null ? (
            <Empty title="Single sign-on is not configured for this account">
              The operator sets PUBLIC_URL, OIDC_ISSUER, OIDC_CLIENT_ID and OIDC_ACCOUNT.
            </Empty>
          ) : (
            <>
              <ProviderState provider={found.provider} onCheck={settings.reload} />
              <Values settings={found} />
              <Roles settings={found} />
            </>
          )
        }
      </Loaded>
    </Card>
  )
}

const problems: Readonly<Record<string, string>> = {
  unavailable: 'The identity provider does not respond, or its response is invalid.',
  rejected: 'The discovery document failed a check. Compare the issuer with the one that the provider publishes.',
}

type ProviderStateProps = { readonly provider: Shown['provider']; readonly onCheck: () => void }

function ProviderState({ provider, onCheck }: ProviderStateProps) {
  const { reachable: isReachable, failure, detail, since, checked_at: checkedAt } = provider
  return (
    <>
      <p>
        {isReachable ? <Badge tone="good">reachable</Badge> : <Badge tone="bad">failing</Badge>} since {listTime(since)}
        , checked {relativeTime(checkedAt)} <Button text="Check again" look="small" onClick={onCheck} />
      </p>
      {failure !== null && (
        <Notice tone="bad" title="The discovery document could not be read">
          {problems[failure] ?? problems.rejected} {detail !== null && <small class="mono quiet block">{detail}</small>}
        </Notice>
      )}
    </>
  )
}

function Values({ settings }: { readonly settings: Shown }) {
  const values: readonly (readonly [string, string])[] = [
    ['Issuer', settings.issuer],
    ['Client ID', settings.client_id],
    ['Name', settings.label],
    ['Scopes', settings.scopes],
    ['Email domains', settings.domains?.join(', ') ?? 'any'],
    ['Email addresses', settings.trusts_email ? 'all count' : 'only verified ones count'],
    ['Password sign-in', settings.only ? 'disabled (single sign-on only)' : 'enabled'],
    ['Session', `ends ${settings.session_hours} h after the sign-in`],
    [
      'Sign-out',
      settings.provider.can_sign_out
        ? 'also at the identity provider'
        : 'at the gateway; the provider offers no page for it',
    ],
  ]
  return (
    <>
      <Pairs of={values} />
      <p class="hint">Redirect URI to register at the identity provider:</p>
      <Snippet text={settings.redirect_uri} what="redirect URI" />
      <p class="hint">URI after sign-out:</p>
      <Snippet text={settings.sign_out_uri} what="URI after sign-out" />
    </>
  )
}

function Roles({
  settings: { roles: mapping, groups_claim: claim, default_role: fallback },
}: {
  readonly settings: Shown
}) {
  const otherwise =
    fallback === null ? 'Users without a mapped group are rejected.' : `Other users get the role ${fallback}.`
  if (mapping.length === 0)
    return (
      <p class="hint">
        Roles are managed on the team page.{' '}
        {fallback === null ? 'New users need an invitation.' : `New users get the role ${fallback}.`}
      </p>
    )
  return (
    <>
      <p class="hint">Roles of the groups in the claim {claim}:</p>
      <Pairs of={mapping.map(({ group, role }) => [group, role] as const)} />
      <p class="hint">The highest role counts. {otherwise}</p>
    </>
  )
}
