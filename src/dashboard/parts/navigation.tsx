import { useEffect, useState } from 'preact/hooks'
import { callApi } from '../state/api.ts'
import { filtersFor, toFilters } from '../state/filters.ts'
import { hashRoute } from '../state/hash-route.ts'
import { hrefTo } from '../state/href.ts'
import { forgetPlayground } from '../state/playground.ts'
import { useGateway } from '../state/resource.ts'
import { currentAccount, currentSession, end, user } from '../state/session.ts'
import { theme, themes } from '../state/theme.ts'
import { Button, Icon, type IconName, Logo } from './controls.tsx'

/** The path of a page is the name of its icon; the menu has no status. */
export type PagePath = '' | 'status' | IconName

type NavigationProps = {
  readonly pages: readonly { readonly path: PagePath; readonly title: string }[]
  readonly current: string
}

/** The groups of the menu with the paths of their pages. */
const groups = Object.entries({
  Observe: ['', 'requests', 'insights'],
  Build: ['playground', 'models', 'providers', 'keys'],
  Control: ['projects', 'tags', 'alerts', 'webhooks'],
  Organization: ['team', 'billing', 'audit', 'settings'],
})

/** Navigation beside the page, or behind a button on narrow screens. */
export function Navigation({ pages, current }: NavigationProps) {
  const [isOpen, setOpen] = useState(false)
  useEffect(() => setOpen(false), [current])
  useEffect(() => {
    if (!isOpen) return
    const close = ({ key }: KeyboardEvent) => {
      if (key === 'Escape') setOpen(false)
    }
    addEventListener('keydown', close)
    return () => removeEventListener('keydown', close)
  }, [isOpen])
  return (
    <header class={`side ${isOpen ? 'open' : ''}`}>
      <div class="side-top">
        <a class="brand" href={hrefTo('')} aria-label="gateway-ai, overview">
          <Logo /> gateway-ai
        </a>
        <Button
          look="plain square only-narrow"
          aria-expanded={isOpen}
          aria-controls="pages"
          aria-label={isOpen ? 'Close the menu' : 'Open the menu'}
          onClick={() => setOpen(!isOpen)}
        >
          <Icon name={isOpen ? 'close' : 'menu'} />
        </Button>
      </div>
      <div class="side-body" id="pages">
        <nav aria-label="Pages">
          {groups.map(([group, paths]) => (
            <div key={group}>
              <h2 id={`menu-${group}`}>{group}</h2>
              <ul aria-labelledby={`menu-${group}`}>
                {paths
                  .flatMap(path => pages.filter(page => page.path === path))
                  .map(({ path, title }) => (
                    <li key={path}>
                      <a href={hrefTo(path, keeps(path, current))} aria-current={path === current ? 'page' : undefined}>
                        <Icon name={path === '' || path === 'status' ? 'overview' : path} size={17} /> {title}
                      </a>
                    </li>
                  ))}
              </ul>
            </div>
          ))}
        </nav>
        <Foot />
      </div>
    </header>
  )
}

/** Pages with the same range and filters keep them. */
const filtered = ['', 'requests', 'keys', 'tags']

const keeps = (path: string, current: string) =>
  filtered.includes(path) && filtered.includes(current) ? filtersFor(path, toFilters(hashRoute.value.query)) : {}

const patience = () => new Promise(resolve => setTimeout(resolve, 2_000))

/**
 * Ends the session, in every tab. After single sign-on the browser goes on to the identity provider, which ends its own
 * session and returns; otherwise the next sign-in would need no password. Without such a page it returns at once.
 */
export async function signOut(because: string | null = null): Promise<void> {
  // Signs out locally even if the gateway is unreachable; the session and the key then expire.
  await Promise.race([forgetPlayground(), patience()])
  const ended = callApi('POST /api/v1/auth/logout').catch(() => undefined)
  const isSingleSignOn = currentSession.peek()?.single_sign_on === true
  // A navigation would abort the request.
  if (isSingleSignOn) await Promise.race([ended, patience()])
  end(because)
  if (isSingleSignOn) location.assign('/api/v1/auth/oidc/logout')
}

function Foot() {
  const next = themes[(themes.indexOf(theme.value) + 1) % themes.length] ?? 'system'
  const change = `Theme: ${theme.value}. Next: ${next}`
  return (
    <div class="side-foot">
      <div class="who">
        <strong title={currentAccount.value?.name}>{currentAccount.value?.name}</strong>
        <span class="quiet" title={user.value?.email}>
          {user.value?.email}
        </span>
      </div>
      <div class="actions">
        <Button look="plain small" onClick={() => void signOut()}>
          <Icon name="out" size={15} /> Sign out
        </Button>
        <Button
          look="plain small"
          aria-label={change}
          title={change}
          onClick={() => {
            theme.value = next
          }}
        >
          <Icon name={theme.value} size={16} />
        </Button>
      </div>
      <ProductLinks />
    </div>
  )
}

/** Links to the API reference and the status of the gateway, and its version. */
export function ProductLinks() {
  const version = useGateway()?.version
  return (
    <p class="product-links quiet">
      <a href="/docs">Docs</a>
      <a href={hrefTo('status')}>Status</a>
      {version !== undefined && <span>v{version}</span>}
    </p>
  )
}
