/**
 * URL layer: blocked hosts from files and URLs, reloaded on a schedule. A new set is built in slices beside the current
 * one and replaces it at once, so that no request waits or sees a partial list. If a list cannot be read, its previous
 * version stays and the log reports it.
 */

import { createReadStream } from 'node:fs'
import type { Readable } from 'node:stream'
import type { Clock, Log, Network } from '../../../core/ports.ts'
import { buildHostSet, type HostSet } from '../../hosts/host-set.ts'
import { normalizeHostname } from '../../hosts/hostname.ts'
import { nextTurn } from '../text-moderator.ts'
import type { BlockedHosts } from '../verdict.ts'
import builtIn from './built-in-hosts.json'

type Blocklist = BlockedHosts & {
  /** Fulfilled when the lists have been read once, successfully or not. */
  readonly ready: Promise<void>
  size(): number
  /** Changes whenever the lists may have changed. */
  version(): number
  close(): void
}

export type BlocklistDeps = {
  readonly fetch: Network['fetch']
  /** Requests a URL that a list's server redirects to, after the checks for page URLs. */
  readonly hop: (location: string, base: URL, signal: AbortSignal) => Promise<Response>
  readonly after: Clock['after']
  readonly log: Pick<Log, 'info' | 'warn'>
}

/** A list is parsed in slices of this size (about 1 ms of work), yielding after each. */
const sliceBytes = 32_768
/** Maximum list size in bytes: about four million names. */
const maximumListBytes = 128 * 1_048_576
const downloadTimeoutMs = 60_000
const maximumRedirects = 3
const expectedNames = 300_000

/**
 * Starts with the built-in lists. Blocked: test hosts that vendors publish (Google Safe Browsing, Microsoft SmartScreen,
 * Cisco Umbrella, WICAR); operators configure real lists. Never blocked: services so widely used that a list entry for all
 * of one is a mistake; entries for hosts below them still count.
 *
 * `sources` (paths or URLs) are added when they are read, and reloaded every `reloadMs`.
 */
export function openBlocklist(
  deps: BlocklistDeps,
  options: { readonly sources: readonly string[]; readonly reloadMs: number; readonly allow: readonly string[] },
): Blocklist {
  const { sources, reloadMs, allow } = options
  const allowed = hostSet([builtIn.neverBlocked, allow.map(host => normalizeHostname(host) ?? '')])
  /** The last set of each source. */
  const kept = new Map<string, HostSet>()
  let sets: readonly HostSet[] = [hostSet([builtIn.blocked])]
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
        deps.log.info('blocklist_loaded', { source: getName(source), names: set.size })
      } catch (cause) {
        if (leaving.signal.aborted) return
        const detail = cause instanceof Error ? cause.message.slice(0, 200) : 'unknown'
        deps.log.warn('blocklist_load_failed', {
          source: getName(source),
          names_kept: kept.get(source)?.size ?? 0,
          detail,
        })
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
      const longest = Math.max(...sets.map(set => set.covers(host)))
      // The most specific entry for a host decides; if equal, the one that allows.
      return longest > 0 && longest > allowed.covers(host)
    },
    close() {
      leaving.abort()
      cancel()
    },
  }
}

function hostSet(lists: readonly (readonly string[])[]): HostSet {
  const builder = buildHostSet()
  for (const list of lists) {
    builder.read(new TextEncoder().encode(list.join('\n')))
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
      await nextTurn()
    }
  }
  const timeout = new AbortController()
  const cancel = deps.after(downloadTimeoutMs, () => timeout.abort())
  try {
    if (/^https?:\/\//i.test(source)) {
      const signal = AbortSignal.any([leaving, timeout.signal])
      const response = await download(deps, new URL(source), signal)
      if (response.body !== null) for await (const piece of response.body) await take(piece)
    } else {
      const stream: Readable = createReadStream(source, { highWaterMark: 8 * sliceBytes })
      for await (const piece of stream) await take(piece as Uint8Array)
    }
  } finally {
    cancel()
  }
  builder.endList()
  const set = builder.finish()
  // An error page or an empty download would silently unblock all hosts.
  if (set.size === 0) throw new Error('it contains no host')
  return set
}

/**
 * Downloads the list at a configured URL. Only its origin is trusted by the operator: a redirect to another origin may
 * only lead to the public web.
 */
async function download({ fetch, hop }: BlocklistDeps, configured: URL, signal: AbortSignal): Promise<Response> {
  let at = configured
  let response = await fetch(at.href, { redirect: 'manual', signal })
  for (let redirects = 0; redirectStatuses.has(response.status); redirects++) {
    await response.body?.cancel()
    const location = response.headers.get('location') ?? ''
    if (redirects === maximumRedirects) throw new Error('redirected too often')
    if (location === '' || !URL.canParse(location, at.href)) throw new Error('redirect without a location')
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

/** Removes the query, which may contain a token. */
function getName(source: string): string {
  return source.replace(/[?#].*$/, '')
}
