/** Another commit of this repository, ready to run. */
import { existsSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { CommandFailure } from '../../src/commands/command.ts'

/**
 * Checks a commit out into `folder`, with this tree's `node_modules` if the lock file is the same and with its own otherwise.
 * Returns the function that removes it. Throws `CommandFailure` if git does not know the commit.
 */
export function checkOut(root: string, commit: string, folder: string): () => void {
  const added = Bun.spawnSync(['git', '-C', root, 'worktree', 'add', '--detach', folder, commit], { stderr: 'pipe' })
  if (!added.success) throw new CommandFailure(`git has no commit ${commit} to check out: ${added.stderr}`)
  const getLock = (of: string) => readFileSync(join(of, 'bun.lock'), 'utf8')
  if (existsSync(join(root, 'node_modules')) && getLock(root) === getLock(folder))
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  else {
    const installed = Bun.spawnSync([process.execPath, 'install', '--frozen-lockfile', '--silent'], { cwd: folder })
    if (!installed.success) throw new CommandFailure(`The packages of ${commit} could not be installed.`)
  }
  return () => void Bun.spawnSync(['git', '-C', root, 'worktree', 'remove', '--force', folder])
}
