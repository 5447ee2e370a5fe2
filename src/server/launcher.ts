/**
 * `npx` hands a SIGTERM to a shell, which ends of it and tells nobody: the gateway behind it would run on, and hold its port
 * and its folder. So who was started through `npx` looks whether the processes between the two are still there.
 */
import { readFileSync } from 'node:fs'

const lookEveryMs = 250
/** Between npx and the gateway stand a shell, `bun run`, and another shell at most. */
const maximumAncestors = 5

/** Calls `onGone` once npx, or what it started this process by, has ended. Does nothing elsewhere, or where `/proc` is not. */
export function watchLauncher(onGone: () => void): void {
  const chain = chainToNpx()
  if (chain === null) return
  const timer = setInterval(() => {
    if (chain.every(({ pid, parent }) => parentOf(pid) === parent)) return
    clearInterval(timer)
    onGone()
  }, lookEveryMs)
  timer.unref()
}

type Link = { readonly pid: number; readonly parent: number }

/** From this process up to npx; null where that is no ancestor. */
function chainToNpx(): readonly Link[] | null {
  const chain: Link[] = []
  for (let pid = process.pid; chain.length < maximumAncestors; ) {
    const parent = parentOf(pid)
    if (parent === null || parent <= 1) return null
    chain.push({ pid, parent })
    // The title that npm gives itself when it is called as npx.
    if (read(parent, 'cmdline').startsWith('npm exec')) return chain
    pid = parent
  }
  return null
}

/** Fields are counted from behind the name, which may itself hold spaces and brackets; the second is the parent. */
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
