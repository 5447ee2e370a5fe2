/** Client-side routing in the URL hash, so that the server only serves one page. */
import { signal } from '@preact/signals'
import { hrefTo, moveToDay, openedAt } from './href.ts'

export { hrefTo }

type HashRoute = {
  /** `['requests']`, `['billing', 'inv_…']` */
  readonly path: readonly string[]
  readonly query: Readonly<Record<string, string>>
}

export const hashRoute = signal(read())

globalThis.addEventListener('hashchange', update)
setInterval(() => moveToDay(Date.now()), 60_000)

function update(): void {
  openedAt.value = Date.now()
  hashRoute.value = read()
}

function read(): HashRoute {
  const [path = '', search = ''] = location.hash.replace(/^#\/?/, '').split('?')
  return {
    path: path.split('/').filter(Boolean).map(decoded),
    query: Object.fromEntries(new URLSearchParams(search)),
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Changes the view of the same page without a history entry. */
export function replaceHashRoute(path: string, query: Readonly<Record<string, string | undefined>> = {}): void {
  history.replaceState(null, '', hrefTo(path, query))
  update()
}
