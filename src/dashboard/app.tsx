import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { isAllowed, type Role } from '../core/accounts/roles.ts'
import { Billing } from './pages/billing.tsx'
import { Keys } from './pages/keys.tsx'
import { Models } from './pages/models.tsx'
import { Overview } from './pages/overview.tsx'
import { Playground } from './pages/playground.tsx'
import { RequestPage } from './pages/request.tsx'
import { Requests } from './pages/requests.tsx'
import { Reset } from './pages/reset-password.tsx'
import { InvitationPage, SignIn, SignUp } from './pages/sign-in.tsx'
import { SingleSignOn } from './pages/single-sign-on.tsx'
import { TwoFactorFirst } from './pages/two-factor.tsx'
import { Verify } from './pages/verify.tsx'
import { Icon, type IconName } from './parts/icon.tsx'
import { Later } from './parts/later.tsx'
import { Navigation } from './parts/navigation.tsx'
import { Empty, FailureNotice, Loading } from './parts/notice.tsx'
import { Page } from './parts/page.tsx'
import { Toast } from './parts/toast.tsx'
import { VerificationNotice } from './parts/verification-notice.tsx'
import { useAction } from './state/action.ts'
import { hashRoute } from './state/hash-route.ts'
import { hrefTo } from './state/href.ts'
import { forgetPlayground } from './state/playground.ts'
import { forgetResources } from './state/resource.ts'
import { currentSession, resume, user } from './state/session.ts'

type PageEntry = {
  readonly path: string
  readonly title: string
  readonly icon: IconName
  readonly show: (rest: readonly string[]) => ComponentChildren
  readonly isFor?: (role: Role) => boolean
  /** Linked elsewhere than in the navigation. */
  readonly isUnlisted?: boolean
}

const loadAlerts = async () => {
  const { Alerts } = await import('./pages/alerts.tsx')
  return () => <Alerts />
}
const loadWebhooks = async () => (await import('./pages/webhooks.tsx')).Webhooks
const loadAudit = async () => (await import('./pages/audit.tsx')).AuditLog
const loadInsights = async () => (await import('./pages/insights.tsx')).Insights
const loadTeam = async () => (await import('./pages/team.tsx')).Team
const loadInvoice = async () => (await import('./pages/invoice.tsx')).InvoicePage
const loadKeyPage = async () => (await import('./pages/key.tsx')).KeyPage
const loadProjects = async () => (await import('./pages/projects.tsx')).Projects
const loadProjectPage = async () => (await import('./pages/project.tsx')).ProjectPage
const loadSettings = async () => (await import('./pages/settings.tsx')).Settings
const loadStatus = async () => (await import('./pages/status.tsx')).StatusPage
const loadTags = async () => (await import('./pages/tags.tsx')).TagsPage

const showStatus = () => <Later key="status" load={loadStatus} what="the status" />

const pages: readonly PageEntry[] = [
  { path: '', title: 'Overview', icon: 'overview', show: () => <Overview /> },
  {
    path: 'playground',
    title: 'Playground',
    icon: 'playground',
    show: () => <Playground />,
    // Each of its requests costs money and uses a key.
    isFor: role => isAllowed(role, 'keys.own'),
  },
  {
    path: 'requests',
    title: 'Requests',
    icon: 'requests',
    show: ([id]) => (id === undefined ? <Requests /> : <RequestPage key={id} id={id} />),
  },
  { path: 'models', title: 'Models', icon: 'models', show: () => <Models /> },
  {
    path: 'insights',
    title: 'Insights',
    icon: 'insights',
    show: () => <Later key="insights" load={loadInsights} what="the insights" />,
  },
  {
    path: 'keys',
    title: 'Keys',
    icon: 'keys',
    show: ([id]) => (id === undefined ? <Keys /> : <Later key={id} load={loadKeyPage} what="the key" />),
  },
  { path: 'tags', title: 'Tags', icon: 'tags', show: () => <Later key="tags" load={loadTags} what="the tags" /> },
  { path: 'team', title: 'Team', icon: 'team', show: () => <Later key="team" load={loadTeam} what="the team" /> },
  {
    path: 'projects',
    title: 'Projects',
    icon: 'projects',
    show: ([id]) =>
      id === undefined ? (
        <Later key="projects" load={loadProjects} what="the projects" />
      ) : (
        <Later key={id} load={loadProjectPage} what="the project" />
      ),
  },
  {
    path: 'billing',
    title: 'Billing',
    icon: 'billing',
    show: ([id]) => (id === undefined ? <Billing /> : <Later key={id} load={loadInvoice} what="the invoice" />),
    isFor: role => isAllowed(role, 'billing.see'),
  },
  {
    path: 'alerts',
    title: 'Alerts',
    icon: 'alerts',
    show: () => <Later key="alerts" load={loadAlerts} what="the alerts" />,
    isFor: role => isAllowed(role, 'alerts.manage'),
  },
  {
    path: 'webhooks',
    title: 'Webhooks',
    icon: 'webhooks',
    show: () => <Later key="webhooks" load={loadWebhooks} what="the webhooks" />,
    isFor: role => isAllowed(role, 'webhooks.manage'),
  },
  {
    path: 'audit',
    title: 'Audit log',
    icon: 'audit',
    show: () => <Later key="audit" load={loadAudit} what="the audit log" />,
    isFor: role => isAllowed(role, 'audit.see'),
  },
  {
    path: 'settings',
    title: 'Settings',
    icon: 'settings',
    show: () => <Later key="settings" load={loadSettings} what="the settings" />,
  },
  { path: 'status', title: 'Status', icon: 'info', show: showStatus, isUnlisted: true },
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
  return <Signed path={first} rest={rest} role={currentSession.value.user.role} />
}

type SignedProps = { readonly path: string; readonly rest: readonly string[]; readonly role: Role }

function Signed({ path, rest, role }: SignedProps) {
  const open = pages.filter(({ isFor }) => isFor?.(role) ?? true)
  const page = open.find(one => one.path === path)
  return (
    <div class="frame">
      <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
        Skip to content
      </button>
      <Navigation pages={open.filter(one => one.isUnlisted !== true)} current={path} />
      <main id="main" tabIndex={-1}>
        <VerificationNotice />
        {page?.show(rest) ?? <NoPage closed={pages.find(one => one.path === path)?.title} />}
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
