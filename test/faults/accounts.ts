/** Accounts for whole gateways under fault, made as an operator makes them. */
import { type Environment, run } from '../harness/processes.ts'

/** The key of a new account that nothing stands in the way of but what is named. */
export async function freshKey(
  environment: Environment,
  limits: { readonly concurrent?: number } = {},
): Promise<string> {
  const email = `${crypto.randomUUID()}@example.com`
  const command = async (...words: string[]) => {
    const done = await run('cli.ts', words, environment)
    if (done.code !== 0) throw new Error(`${words.join(' ')}: ${done.stderr}`)
    return done.stdout
  }
  await command('accounts', 'create', email, '--plan', 'usage')
  const concurrent = String(limits.concurrent ?? 1_000)
  const roomy = ['--rpm', '100000', '--daily-tokens', '1000000000', '--daily-cost-usd', '10000']
  await command('accounts', 'limits', email, '--concurrent', concurrent, ...roomy)
  return JSON.parse(await command('keys', 'create', email, '--json')).key
}
