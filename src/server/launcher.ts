/**
 * `npx` passes a SIGTERM to a shell, which ends without passing it on. The gateway would keep running and hold its port
 * and its folder. A process started through `npx` therefore checks whether the processes in between still run.
 */
import { readFileSync } from 'node:fs'
import { intervalTimer } from '../core/jobs/repeating.ts'

const lookEveryMs = 1_000
/** Maximum processes between npx and the gateway: a shell, `bun run`, and another shell. */
const maximumAncestors = 5

/** Calls `onGone` when npx or a process in between has ended. Does nothing without npx or without `/proc`. */
export function watchLauncher(onGone: () => void): void {
  const chain = chainToNpx()
  if (chain === null) return
  const stop = intervalTimer(lookEveryMs, () => {
    if (chain.every(({ pid, parent }) => parentOf(pid) === parent)) return
    stop()
    onGone()
  })
}

type Link = { readonly pid: number; readonly parent: number }

/** Returns the processes from this one up to npx; null if npx is not an ancestor. */
function chainToNpx(): readonly Link[] | null {
  const chain: Link[] = []
  for (let pid = process.pid; chain.length < maximumAncestors; ) {
    const parent = parentOf(pid)
    if (parent === null || parent <= 1) return null
    chain.push({ pid, parent })
    // Process title that npm sets for npx.
    if (read(parent, 'cmdline').startsWith('npm exec')) return chain
    pid = parent
  }
  return null
}

/** Fields are counted after the name, which may contain spaces and parentheses; the second one is the parent. */
function parentOf(pid: number): number | null {
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
