/** Installs the locked dependencies for `bun run start`. Needs none itself, so that its first line appears at once. */

/** An installation that has nothing to do ends earlier, and needs no line. */
const quietMs = 300

const told = setTimeout(() => process.stdout.write('gateway-ai installs its dependencies\n'), quietMs)
const words = ['install', '--frozen-lockfile', '--production', '--silent']
const child = Bun.spawn([process.execPath, ...words], { stdin: 'ignore', stdout: 'inherit', stderr: 'inherit' })
process.exitCode = await child.exited
clearTimeout(told)
