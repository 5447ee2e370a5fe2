/**
 * Finds and ends the processes of a test run: gateways, Postgres, Redis, browsers, compilers. A server that became a
 * daemon has another parent, and Redis overwrites its environment with its title, so each process is found by its
 * inherited temporary folder, its working directory or its parent.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

const lookEveryMs = 50

/** Returns the IDs of all processes that use `folder` for temporary files, and of their descendants. */
export function getProcesses(folder: string): readonly number[] {
  const parents = new Map<number, number>()
  const found = new Set<number>()
  for (const pid of processIds()) {
    const stat = read(pid, 'stat')
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (state === undefined || state === 'Z' || pid === process.pid) continue
    parents.set(pid, Number(parent))
    if (read(pid, 'environ').includes(`TMPDIR=${folder}`) || workingDirectory(pid).startsWith(folder)) found.add(pid)
  }
  for (let size = -1; size !== found.size; ) {
    size = found.size
    for (const [pid, parent] of parents) if (found.has(parent)) found.add(pid)
  }
  return [...found]
}

/**
 * Ends all processes of a run: by SIGINT, at which a Postgres and a Redis remove what they share with others, and after
 * `graceMs` by SIGKILL. Resolves when none runs.
 */
export async function getEndProcesses(folder: string, graceMs: number): Promise<void> {
  const told = new Set<number>()
  for (const since = performance.now(); ; await Bun.sleep(lookEveryMs)) {
    const running = getProcesses(folder)
    if (running.length === 0) return
    const isOver = performance.now() - since > graceMs
    for (const pid of running) if (isOver || !told.has(pid)) signal(pid, isOver ? 'SIGKILL' : 'SIGINT')
    for (const pid of running) told.add(pid)
  }
}

/** Returns the command line of a process. */
export const getCommand = (pid: number) => read(pid, 'cmdline').replaceAll('\0', ' ')

/** Returns the processor time in seconds of a running process and of its ended children; 0 where this is unknown. */
export function getCpuSeconds(pid: number): number {
  const stat = read(pid, 'stat')
  const times = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 15)
  return times.reduce((sum, ticks) => sum + Number(ticks), 0) / 100
}

function processIds(): number[] {
  try {
    return readdirSync('/proc')
      .filter(name => /^\d+$/.test(name))
      .map(Number)
  } catch {
    // A system without this folder: only the direct children of a run are known.
    return []
  }
}

function workingDirectory(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`)
  } catch {
    return ''
  }
}

function read(pid: number, file: 'stat' | 'environ' | 'cmdline'): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    // It has ended, or belongs to another user.
    return ''
  }
}

function signal(pid: number, name: 'SIGINT' | 'SIGKILL'): void {
  try {
    process.kill(pid, name)
  } catch {
    // It has ended.
  }
}
