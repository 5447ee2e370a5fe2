#!/usr/bin/env bun
/** The gateway as a program, and its commands. It imports on demand, because its first line must not wait for the rest. */
import packageJson from '../package.json'

const words = process.argv.slice(2)
if (words.length === 0) await (await import('./server/start.ts')).start()
else process.exitCode = await (await import('./commands/execute.ts')).execute(words, packageJson.version)
