/** Processes of a measurement: started, read for one line, and stopped by ID. */
import { readFileSync } from 'node:fs'

const children = new Set<Bun.Subprocess>()

export type Child = { readonly pid: number; readonly line: string; readonly exited: Promise<number> }

/** Starts a process and resolves with its first line of output. Throws if it ends without one. */
export async function startChild(
  words: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  cwd?: string,
): Promise<Child> {
  const env = { ...process.env, ...environment }
  const child = Bun.spawn([...words], { stdout: 'pipe', stderr: 'inherit', env, ...(cwd === undefined ? {} : { cwd }) })
  children.add(child)
  void child.exited.then(() => children.delete(child))
  const reader = child.stdout.getReader()
  const decoder = new TextDecoder()
  let text = ''
  while (!text.includes('\n')) {
    const piece = await reader.read()
    if (piece.done) throw new Error(`${words[1]} ended before it had said a line`)
    text += decoder.decode(piece.value, { stream: true })
  }
  void drain(reader)
  return { pid: child.pid, line: text.slice(0, text.indexOf('\n')), exited: child.exited }
}

async function drain(reader: { read(): Promise<{ done: boolean }> }): Promise<void> {
  while (!(await reader.read()).done);
}

/** Ends the running processes; SIGTERM lets one write its profile. */
export async function stopChildren(signal: 'SIGKILL' | 'SIGTERM' = 'SIGKILL'): Promise<void> {
  for (const child of children) child.kill(signal)
  await Promise.all([...children].map(child => child.exited))
}

/** Returns user and system time of a process in seconds (Linux; NaN elsewhere). */
export function cpuSeconds(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
    return (Number(fields[11]) + Number(fields[12])) / 100
  } catch {
    return Number.NaN
  }
}

/** Returns the resident megabytes of a process (Linux; NaN elsewhere). */
export function residentMegabytes(pid: number): number {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
  } catch {
    return Number.NaN
  }
}

export const median = (values: readonly number[]): number =>
  [...values].sort((value, other) => value - other)[Math.floor(values.length / 2)] ?? Number.NaN

/** Returns the process IDs of a process's children (Linux; none elsewhere). */
export function getFamily(pid: number): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
    return text === '' ? [] : text.split(' ').map(Number)
  } catch {
    return []
  }
}
