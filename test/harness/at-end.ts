/** Preloaded, so that its hook runs once, after the last file of a process. */
import { afterAll } from 'bun:test'

const tasks: (() => Promise<unknown>)[] = []

/** Registers the end of something that all files of a process share. */
export const atEnd = (task: () => Promise<unknown>) => void tasks.push(task)

afterAll(async () => {
  for (const task of tasks) await task()
})
