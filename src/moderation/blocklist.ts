/**
 * Layer 3: blocked domains, from files and addresses, read anew on a schedule. A new set is built in slices beside the one
 * in use and takes its place at once, so that no request waits and none sees half a list. A list that cannot be read keeps
 * what it said before; the log says so.
 */
import { createReadStream } from 'node:fs'
import type { Readable } from 'node:stream'
import { buildHostSet, type HostSet, longestCovered } from '../core/moderation/host-set.ts'
import { normalizeHostname } from '../core/moderation/hostname.ts'
import type { BlockedHosts } from '../core/moderation/text-moderator.ts'
import { blockedHosts, neverBlockedHosts } from './built-in-hosts.ts'

export type Blocklist = BlockedHosts & {
  /** Fulfilled once the lists have been read for the first time, well or not. */
  readonly ready: Promise<void>
  size(): number
  /** Another one whenever the lists may say something else. */
  version(): number
  close(): void
}

export type BlocklistDeps = {
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>
  /** Requests an address that a list's server redirects to, once it is judged like the address of a page. */
  readonly hop: (location: string, base: URL, signal: AbortSignal) => Promise<Response>
  readonly after: (milliseconds: number, action: () => void) => () => void
  readonly log: { info(event: string, fields: Fields): void; warn(event: string, fields: Fields): void }
}
type Fields = Readonly<Record<string, string | number>>

/** A list is read in pieces of this size, with a breath after each: some 1 ms of work. */
const sliceBytes = 65_536
/** Longest list, in bytes: some four million names. */
const maximumListBytes = 128 * 1_048_576
const downloadTimeoutMs = 60_000
const maximumRedirects = 3
const expectedNames = 300_000

/** Starts with our own list; `sources` (paths or addresses) follow as soon as they are read, and again every `reloadMs`. */
export function openBlocklist(
  deps: BlocklistDeps,
  options: { readonly sources: readonly string[]; readonly reloadMs: number; readonly allow: readonly string[] },
): Blocklist {
  const { sources, reloadMs, allow } = options
  const allowed = hostSet([neverBlockedHosts, allow.map(host => normalizeHostname(host) ?? '').join('\n')])
  /** What each source last said. */
  const kept = new Map<string, HostSet>()
  let sets: readonly HostSet[] = [hostSet([blockedHosts])]
  const own = sets
  let version = 0
  let cancel = () => {}
  const leaving = new AbortController()

  const load = async () => {
    for (const source of sources) {
      if (leaving.signal.aborted) return
      try {
        const set = await readList(deps, source, leaving.signal)
        kept.set(source, set)
        deps.log.info('blocklist_read', { source: nameOf(source), names: set.size })
      } catch (cause) {
        if (leaving.signal.aborted) return
        const detail = cause instanceof Error ? cause.message.slice(0, 200) : 'unknown'
        deps.log.warn('blocklist_not_read', { source: nameOf(source), names_kept: kept.get(source)?.size ?? 0, detail })
      }
      sets = [...own, ...kept.values()]
      version++
    }
    if (!leaving.signal.aborted) cancel = deps.after(reloadMs, () => void load())
  }

  return {
    ready: sources.length === 0 ? Promise.resolve() : load(),
    version: () => version,
    size: () => sets.reduce((sum, set) => sum + set.size, 0),
    isBlocked(host) {
      const longest = longestCovered(sets, host)
      // The entry that says more of a host decides; between equals, the one that allows.
      return longest > 0 && longest > allowed.covers(host)
    },
    close() {
      leaving.abort()
      cancel()
    },
  }
}

function hostSet(lists: readonly string[]): HostSet {
  const builder = buildHostSet()
  for (const list of lists) {
    builder.read(new TextEncoder().encode(list.trim().split(/\s+/).join('\n')))
    builder.endList()
  }
  return builder.finish()
}

async function readList(deps: BlocklistDeps, source: string, leaving: AbortSignal): Promise<HostSet> {
  const builder = buildHostSet(expectedNames)
  let bytes = 0
  const take = async (piece: Uint8Array) => {
    bytes += piece.byteLength
    if (bytes > maximumListBytes) throw new Error(`longer than ${maximumListBytes} bytes`)
    for (let from = 0; from < piece.length; from += sliceBytes) {
      builder.read(piece.subarray(from, from + sliceBytes))
      await breath()
    }
  }
  const timeout = new AbortController()
  const cancel = deps.after(downloadTimeoutMs, () => timeout.abort())
  try {
    if (isAddress(source)) {
      const signal = AbortSignal.any([leaving, timeout.signal])
      const response = await download(deps, new URL(source), signal)
      if (response.body !== null) for await (const piece of response.body) await take(piece)
    } else {
      const stream: Readable = createReadStream(source, { highWaterMark: 4 * sliceBytes })
      for await (const piece of stream) await take(piece as Uint8Array)
    }
  } finally {
    cancel()
  }
  builder.endList()
  const set = builder.finish()
  // An error page or an empty download would silently open what was closed.
  if (set.size === 0) throw new Error('it names no host')
  return set
}

/**
 * The list at an address of the configuration. The operator vouches for that origin and no other: a redirect that leaves it
 * leads into the public web or nowhere.
 */
async function download({ fetch, hop }: BlocklistDeps, configured: URL, signal: AbortSignal): Promise<Response> {
  let at = configured
  let response = await fetch(at.href, { redirect: 'manual', signal })
  for (let redirects = 0; redirectStatuses.has(response.status); redirects++) {
    await response.body?.cancel()
    const location = response.headers.get('location') ?? ''
    if (redirects === maximumRedirects) throw new Error('redirected too often')
    if (location === '' || !URL.canParse(location, at.href)) throw new Error('redirected without an address')
    const next = new URL(location, at.href)
    const isOwn = next.origin === configured.origin && next.username === '' && next.password === ''
    response = isOwn ? await fetch(next.href, { redirect: 'manual', signal }) : await hop(next.href, at, signal)
    at = next
  }
  if (response.ok) return response
  await response.body?.cancel()
  throw new Error(`status ${response.status}`)
}

const redirectStatuses = new Set([301, 302, 303, 307, 308])

function breath(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}

function isAddress(source: string): boolean {
  return /^https?:\/\//i.test(source)
}

/** An address may carry a token behind its `?`. */
function nameOf(source: string): string {
  return source.replace(/[?#].*$/, '')
}
