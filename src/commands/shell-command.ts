/**
 * An operator's command as it can be typed where this process runs: whoever has Bun by `npx` alone has no `bun` to call.
 * `executable` is the path of the Bun that runs this.
 */
export function shellCommand(command: string, executable: string = process.execPath): string {
  const bun = /[\\/]_npx[\\/]/.test(executable) ? `npx -y bun@${Bun.version}` : 'bun'
  return `${bun} run gateway ${command}`
}
