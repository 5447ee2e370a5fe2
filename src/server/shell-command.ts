/**
 * Returns an operator command in a form that can be typed on this machine: without a global Bun installation (`npx`)
 * there is no `bun`. `executable` is the path of the running Bun.
 */
export function shellCommand(command: string, executable: string = process.execPath): string {
  const bun = /[\\/]_npx[\\/]/.test(executable) ? `npx -y bun@${Bun.version}` : 'bun'
  return `${bun} run gateway ${command}`
}
