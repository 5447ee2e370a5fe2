import type { ComponentChildren, ComponentType } from 'preact'
import { useEffect } from 'preact/hooks'
import type { Action } from '../core/accounts/roles.ts'
import { InvitationPage, Reset, Verify } from './pages/email-links.tsx'
import { Models } from './pages/models.tsx'
import { Overview } from './pages/overview.tsx'
import { Playground } from './pages/playground.tsx'
import { RequestPage } from './pages/request.tsx'
import { Requests } from './pages/requests.tsx'
import { SignIn, SignUp } from './pages/sign-in.tsx'
import { SingleSignOn } from './pages/single-sign-on.tsx'
import { TwoFactorFirst } from './pages/two-factor.tsx'
import { VerificationNotice } from './parts/account-notices.tsx'
import { Icon, type IconName } from './parts/controls.tsx'
import { Navigation } from './parts/navigation.tsx'
import { Empty, FailureNotice, Later, Loading } from './parts/notice.tsx'
import { Page, Toast } from './parts/page.tsx'
import { useAction } from './state/action.ts'
import { hashRoute } from './state/hash-route.ts'
import { hrefTo } from './state/href.ts'
import { forgetPlayground } from './state/playground.ts'
import { forgetResources } from './state/resource.ts'
import { currentSession, may, resume, user } from './state/session.ts'

type PageEntry = {
  readonly path: string
  readonly title: string
  readonly icon: IconName
  /** The page, or the one of the ID in the path. */
  readonly show: (id?: string) => ComponentChildren
  /** The right that opens the page; absent = every role. */
  readonly right?: Action
}

/** A page whose code is loaded when it is first shown. */
const later =
  (what: string, load: () => Promise<ComponentType<{ id: string }>>) =>
  (id = '') => <Later key={`${what} ${id}`} load={load} what={`the ${what}`} id={id} />

const showKeys = later('keys', async () => (await import('./pages/keys.tsx')).Keys)
const showKey = later('key', async () => (await import('./pages/key.tsx')).KeyPage)
const showProjects = later('projects', async () => (await import('./pages/projects.tsx')).Projects)
const showProject = later('project', async () => (await import('./pages/project.tsx')).ProjectPage)
const showProviders = later('providers', async () => (await import('./pages/providers.tsx')).Providers)
const showBilling = later('billing', async () => (await import('./pages/billing.tsx')).Billing)
const showInvoice = later('invoice', async () => (await import('./pages/invoice.tsx')).InvoicePage)
const showInsights = later('insights', async () => (await import('./pages/insights.tsx')).Insights)
const showTags = later('tags', async () => (await import('./pages/tags.tsx')).TagsPage)
const showTeam = later('team', async () => (await import('./pages/team.tsx')).Team)
const showAlerts = later('alerts', async () => (await import('./pages/alerts.tsx')).AlertsPage)
const showWebhooks = later('webhooks', async () => (await import('./pages/webhooks.tsx')).Webhooks)
const showAudit = later('audit log', async () => (await import('./pages/audit.tsx')).AuditLog)
const showSettings = later('settings', async () => (await import('./pages/settings.tsx')).Settings)
const showStatus = later('status', async () => (await import('./pages/status.tsx')).StatusPage)

const pages: readonly PageEntry[] = [
  { path: '', title: 'Overview', icon: 'overview', show: () => <Overview /> },
  // Each of its requests costs money and uses a key.
  { path: 'playground', title: 'Playground', icon: 'playground', show: () => <Playground />, right: 'keys.own' },
  {
    path: 'requests',
    title: 'Requests',
    icon: 'requests',
    show: id => (id === undefined ? <Requests /> : <RequestPage key={id} id={id} />),
  },
  { path: 'models', title: 'Models', icon: 'models', show: () => <Models /> },
  { path: 'providers', title: 'Providers', icon: 'providers', show: showProviders, right: 'providers.see' },
  { path: 'insights', title: 'Insights', icon: 'insights', show: showInsights },
  { path: 'keys', title: 'Keys', icon: 'keys', show: id => (id === undefined ? showKeys() : showKey(id)) },
  { path: 'tags', title: 'Tags', icon: 'tags', show: showTags },
  { path: 'team', title: 'Team', icon: 'team', show: showTeam },
  {
    path: 'projects',
    title: 'Projects',
    icon: 'projects',
    show: id => (id === undefined ? showProjects() : showProject(id)),
  },
  {
    path: 'billing',
    title: 'Billing',
    icon: 'billing',
    show: id => (id === undefined ? showBilling() : showInvoice(id)),
    right: 'billing.see',
  },
  { path: 'alerts', title: 'Alerts', icon: 'alerts', show: showAlerts, right: 'alerts.manage' },
  { path: 'webhooks', title: 'Webhooks', icon: 'webhooks', show: showWebhooks, right: 'webhooks.manage' },
  { path: 'audit', title: 'Audit log', icon: 'audit', show: showAudit, right: 'audit.see' },
  { path: 'settings', title: 'Settings', icon: 'settings', show: showSettings },
  { path: 'status', title: 'Status', icon: 'info', show: showStatus },
]

export function App() {
  const resuming = useAction(resume)
  const userId = user.value?.id
  useEffect(() => void resuming.run(), [])
  // Another user must not see this user's data.
  useEffect(
    () => () => {
      forgetResources()
      void forgetPlayground()
    },
    [userId],
  )

  const [first = '', ...rest] = hashRoute.value.path
  // An invitation is shown even if another user is signed in.
  if (first === 'invitation') return <InvitationPage token={rest[0] ?? ''} />
  if (first === 'verify') return <Verify token={rest[0] ?? ''} />
  if (first === 'sso') return <SingleSignOn failure={hashRoute.value.query.error} />
  if (first === 'reset') return <Reset token={rest[0]} />
  const isSignedIn = currentSession.value?.two_factor_setup_required === false
  // Without its database the gateway renews no session: its status tells so.
  const isResumed = resuming.failure !== null || currentSession.value !== undefined
  if (first === 'status' && isResumed && !isSignedIn) return showStatus()
  if (resuming.failure !== null)
    return (
      <main class="door">
        <FailureNotice failure={resuming.failure} retry={() => void resuming.run()} />
      </main>
    )
  if (currentSession.value === undefined)
    return (
      <main class="door">
        <Loading what="the dashboard" lines={2} />
      </main>
    )
  if (currentSession.value === null) return first === 'sign-up' ? <SignUp /> : <SignIn />
  if (currentSession.value.two_factor_setup_required) return <TwoFactorFirst />
  return <Signed path={first} id={rest[0]} />
}

function Signed({ path, id }: { readonly path: string; readonly id: string | undefined }) {
  const open = pages.filter(({ right }) => right === undefined || may(right))
  const page = open.find(entry => entry.path === path)
  return (
    <div class="frame">
      <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
        Skip to content
      </button>
      <Navigation pages={open} current={path} />
      <main id="main" tabIndex={-1}>
        <VerificationNotice />
        {page?.show(id) ?? <NoPage closed={pages.find(entry => entry.path === path)?.title} />}
      </main>
      <Toast />
    </div>
  )
}

/** `closed` is the title of a page that the user's role cannot open. */
function NoPage({ closed }: { readonly closed: string | undefined }) {
  return (
    <Page title={closed === undefined ? 'Page not found' : 'Permission denied'}>
      <div class="card">
        <Empty
          title={
            closed === undefined
              ? 'This page does not exist.'
              : `Your role cannot open ${closed}. An owner of the account can change your role.`
          }
        >
          <a href={hrefTo('')}>
            Back to the overview <Icon name="chevron" size={14} />
          </a>
        </Empty>
      </div>
    </Page>
  )
}
