import type { ComponentChildren, ComponentType } from 'preact'
import { useEffect } from 'preact/hooks'
import type { Action } from '../core/accounts/roles.ts'
import { InvitationPage, Reset, Verify } from './pages/email-links.tsx'
import { Overview } from './pages/overview.tsx'
import { Playground } from './pages/playground.tsx'
import { RequestPage } from './pages/request.tsx'
import { Requests } from './pages/requests.tsx'
import { SignIn, SignUp } from './pages/sign-in.tsx'
import { SingleSignOn } from './pages/single-sign-on.tsx'
import { TwoFactorFirst } from './pages/two-factor.tsx'
import { VerificationNotice } from './parts/account-notices.tsx'
import { Icon } from './parts/controls.tsx'
import { Navigation, type PagePath } from './parts/navigation.tsx'
import { Empty, FailureNotice, Later, Loading } from './parts/notice.tsx'
import { Page, Toast } from './parts/page.tsx'
import { humanize } from './state/format.ts'
import { hashRoute } from './state/hash-route.ts'
import { hrefTo } from './state/href.ts'
import { forgetPlayground } from './state/playground.ts'
import { forgetResources, useAction } from './state/resource.ts'
import { currentSession, may, resume, user } from './state/session.ts'

type PageEntry = {
  readonly path: PagePath
  /** Absent = the path. */
  readonly title?: string
  readonly show: Show
  /** The page of an ID; absent = `show` has it. */
  readonly showOne?: Show
  /** The right that opens the page; absent = every role. */
  readonly right?: Action
}
/** Shows the page of an ID, or with an empty one of all. */
type Show = (id: string) => ComponentChildren

/** A page whose code is loaded when it is first shown. */
const later =
  (what: string, load: () => Promise<ComponentType<{ id: string }>>): Show =>
  id => <Later key={`${what} ${id}`} load={load} what={`the ${what}`} id={id} />

const showProviders = later('providers', async () => (await import('./pages/providers.tsx')).Providers)
const showBilling = later('billing', async () => (await import('./pages/billing.tsx')).Billing)
const showInvoice = later('invoice', async () => (await import('./pages/invoice.tsx')).InvoicePage)
const showKeys = later('keys', async () => (await import('./pages/keys.tsx')).Keys)
const showKey = later('key', async () => (await import('./pages/key.tsx')).KeyPage)
const showProjects = later('projects', async () => (await import('./pages/projects.tsx')).Projects)
const showProject = later('project', async () => (await import('./pages/project.tsx')).ProjectPage)
const showAlerts = later('alerts', async () => (await import('./pages/alerts.tsx')).AlertsPage)
const showWebhooks = later('webhooks', async () => (await import('./pages/webhooks.tsx')).Webhooks)
const showAudit = later('audit log', async () => (await import('./pages/audit.tsx')).AuditLog)
const showStatus = later('status', async () => (await import('./pages/status.tsx')).StatusPage)

const pages: readonly PageEntry[] = [
  { path: '', title: 'Overview', show: () => <Overview /> },
  // Each of its requests costs money and uses a key.
  { path: 'playground', show: () => <Playground />, right: 'keys.own' },
  { path: 'requests', show: () => <Requests />, showOne: id => <RequestPage key={id} id={id} /> },
  { path: 'models', show: later('models', async () => (await import('./pages/models.tsx')).Models) },
  { path: 'providers', show: showProviders, right: 'providers.see' },
  { path: 'insights', show: later('insights', async () => (await import('./pages/insights.tsx')).Insights) },
  { path: 'keys', show: showKeys, showOne: showKey },
  { path: 'tags', show: later('tags', async () => (await import('./pages/tags.tsx')).TagsPage) },
  { path: 'team', show: later('team', async () => (await import('./pages/team.tsx')).Team) },
  { path: 'projects', show: showProjects, showOne: showProject },
  { path: 'billing', show: showBilling, showOne: showInvoice, right: 'billing.see' },
  { path: 'alerts', show: showAlerts, right: 'alerts.manage' },
  { path: 'webhooks', show: showWebhooks, right: 'webhooks.manage' },
  { path: 'audit', title: 'Audit log', show: showAudit, right: 'audit.see' },
  { path: 'settings', show: later('settings', async () => (await import('./pages/settings.tsx')).Settings) },
  { path: 'status', show: showStatus },
]
const getTitle = ({ path, title = humanize(path) }: PageEntry) => title

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
  if (first === 'status' && isResumed && !isSignedIn) return showStatus('')
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
  return <Signed path={first} id={rest[0] ?? ''} />
}

function Signed({ path, id }: { readonly path: string; readonly id: string }) {
  const open = pages.filter(({ right }) => right === undefined || may(right))
  const page = open.find(entry => entry.path === path)
  const closed = pages.find(entry => entry.path === path)
  const show = id === '' ? page?.show : (page?.showOne ?? page?.show)
  return (
    <div class="frame">
      <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
        Skip to content
      </button>
      <Navigation pages={open.map(entry => ({ path: entry.path, title: getTitle(entry) }))} current={path} />
      <main id="main" tabIndex={-1}>
        <VerificationNotice />
        {show?.(id) ?? <NoPage closed={closed && getTitle(closed)} />}
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
