/** Signals and messages between this process and the one that started it. */
import { readFileSync } from 'node:fs'
import { isatty } from 'node:tty'
import { intervalTimer } from '../core/jobs/repeating.ts'

const lookEveryMs = 1_000
/** Maximum processes between npx and the gateway: a shell, `bun run`, and another shell. */
const maximumAncestors = 5

/**
 * Calls `onGone` when npx or a process in between has ended. Does nothing without npx or without `/proc`. `npx` passes a
 * SIGTERM to a shell, which ends without passing it on: the gateway would keep running and hold its port and its folder.
 */
export function watchLauncher(onGone: () => void): void {
  const chain = chainToNpx()
  if (chain === null) return
  const stop = intervalTimer(lookEveryMs, () => {
    if (chain.every(({ pid, parent }) => findParent(pid) === parent)) return
    stop()
    onGone()
  })
}

type Link = { readonly pid: number; readonly parent: number }

/** Returns the processes from this one up to npx; null if npx is not an ancestor. */
function chainToNpx(): readonly Link[] | null {
  const chain: Link[] = []
  for (let pid = process.pid; chain.length < maximumAncestors; ) {
    const parent = findParent(pid)
    if (parent === null || parent <= 1) return null
    chain.push({ pid, parent })
    // Process title that npm sets for npx.
    if (read(parent, 'cmdline').startsWith('npm exec')) return chain
    pid = parent
  }
  return null
}

/** Fields are counted after the name, which may contain spaces and parentheses; the second one is the parent. */
function findParent(pid: number): number | null {
  const stat = read(pid, 'stat')
  const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  return Number.isInteger(parent) ? parent : null
}

function read(pid: number, file: 'stat' | 'cmdline'): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return ''
  }
}

/**
 * SIGHUP means that the operator requests a reload, or that the terminal of the process was closed. Without this
 * distinction a gateway would keep running after its terminal window was closed.
 */
export function onHangup({ reload, stop }: { readonly reload: () => unknown; readonly stop: () => unknown }): void {
  const terminals = [0, 1, 2].filter(descriptor => isatty(descriptor))
  process.on('SIGHUP', () => {
    const isClosed = terminals.length > 0 && !terminals.some(descriptor => isatty(descriptor))
    if (isClosed) stop()
    else reload()
  })
}

/**
 * Sends a message to another process of this start. A process that is ending has closed its channel; the message is
 * then dropped.
 */
export function sendToProcess<M>(peer: { send(message: M): unknown }, message: M): void {
  try {
    peer.send(message)
  } catch {}
}
