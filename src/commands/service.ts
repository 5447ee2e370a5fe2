/** `serve` and `migrate`: the gateway itself and its database. */
import { command, print } from './command.ts'
import { withDatabase } from './open-database.ts'

const serve = command({
  name: 'serve',
  about: 'Run the gateway, like `bun run start`',
  operands: {},
  options: {},
  async run() {
    await (await import('../server/start.ts')).start()
    // The gateway ends the process itself.
    await new Promise<never>(() => {})
  },
})

const migrate = command({
  name: 'migrate',
  about: 'Run migrations (also run at startup)',
  operands: {},
  options: {},
  run: () => withDatabase(async () => print('The database is up to date.'), { mayBegin: true, bringUpToDate: true }),
})

export const serviceCommands = [serve, migrate]
