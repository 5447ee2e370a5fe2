import { expect, test } from 'bun:test'
import packageJson from '../../../package.json'
import { shellCommand } from '../../../src/core/validation/errors.ts'

test('shellCommand: returns a command that can be typed, by npx without a global Bun', () => {
  const npx = '/home/me/.npm/_npx/8666902f26f2dc1a/node_modules/bun/bin/bun.exe'
  expect(shellCommand('keys list a@b.test', npx)).toBe(`npx -y bun@${Bun.version} run gateway keys list a@b.test`)
  expect(shellCommand('keys list a@b.test', '/usr/local/bin/bun')).toBe('bun run gateway keys list a@b.test')
})

test('shellCommand: names the package where the gateway is installed as one', () => {
  const folder = '/app/node_modules/gateway-ai-server/src/server'
  expect(shellCommand('keys list a@b.test', '/usr/bin/bun', folder)).toBe(
    `bun x ${packageJson.name} keys list a@b.test`,
  )
})
