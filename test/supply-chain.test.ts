/** Licenses and the bill of materials of production, and the pins of the workflows and the image. */
import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isAllowedLicense } from '../deploy/supply-chain/licenses.ts'
import { productionPackages } from '../deploy/supply-chain/packages.ts'
import { getSbom } from '../deploy/supply-chain/sbom.ts'
import packageJson from '../package.json'

const root = join(import.meta.dir, '..')
const text = (path: string) => readFileSync(join(root, path), 'utf8')

describe('licenses', () => {
  test.each([
    ['MIT', true],
    ['Apache-2.0', true],
    ['(MIT OR GPL-3.0-only)', true],
    ['MIT AND BSD-3-Clause', true],
    ['MIT AND GPL-3.0-only', false],
    ['GPL-3.0-or-later', false],
    ['AGPL-3.0', false],
    ['LGPL-2.1', false],
    ['MPL-2.0', false],
    ['MIT WITH something', false],
    ['(MIT AND (ISC OR GPL-2.0))', false],
    ['SEE LICENSE IN LICENSE', false],
    ['UNLICENSED', false],
    ['', false],
    [null, false],
  ])('judge %p as allowed: %p', (expression, isAllowed) => expect(isAllowedLicense(expression)).toBe(isAllowed))

  test('permit every package of production', () => {
    const refused = productionPackages(root).filter(({ license }) => !isAllowedLicense(license))
    expect(refused.map(({ name, license }) => `${name}: ${license}`)).toEqual([])
  })
})

describe('bill of materials', () => {
  const { components, dependencies, metadata } = getSbom(root)

  test('lists each dependency of package.json with its version, and no dependency of development', () => {
    const listed = new Map(components.map(({ name, version }) => [name, version]))
    for (const [name, version] of Object.entries(packageJson.dependencies))
      expect({ name, version: listed.get(name) }).toEqual({ name, version })
    const development = Object.keys(packageJson.devDependencies).filter(name => listed.has(name))
    expect(development).toEqual([])
  })

  test('states purl, hash and license of each package, and only references that exist', () => {
    const references = new Set([metadata.component['bom-ref'], ...components.map(component => component['bom-ref'])])
    expect(references.size).toBe(components.length + 1)
    for (const { purl, hashes, licenses } of components) {
      expect(purl).toMatch(/^pkg:npm\/(%40[\w.-]+\/)?[\w.-]+@\d+\.\d+\.\d+/)
      expect(hashes[0]?.content).toMatch(/^[0-9a-f]{128}$/)
      expect(licenses).toHaveLength(1)
    }
    expect(dependencies.map(({ ref }) => ref).filter(ref => !references.has(ref))).toEqual([])
    expect(dependencies.flatMap(({ dependsOn }) => dependsOn).filter(ref => !references.has(ref))).toEqual([])
    expect(dependencies[0]?.dependsOn).toHaveLength(Object.keys(packageJson.dependencies).length)
  })
})

describe('pins', () => {
  const workflows = readdirSync(join(root, '.github/workflows')).map(name => text(`.github/workflows/${name}`))

  test('name a commit for each action, with its version', () => {
    const used = workflows.flatMap(workflow => [...workflow.matchAll(/uses: (.*)$/gm)].map(([, action = '']) => action))
    expect(used.length).toBeGreaterThan(4)
    expect(used.filter(action => !/^(\.\/.*|[\w/-]+@[0-9a-f]{40} # v\d+(\.\d+)*)$/.test(action))).toEqual([])
  })

  test('name one version of Bun in the image, the workflows and the requirements', () => {
    const versions = [...workflows, text('Dockerfile'), text('.ci/run')].flatMap(name =>
      [...name.matchAll(/(?:oven\/bun:|bun-version: |bun@)(\d+\.\d+\.\d+)/g)].map(([, version]) => version),
    )
    expect(versions.length).toBeGreaterThan(4)
    expect(new Set(versions)).toEqual(new Set([packageJson.engines.bun.replace('>=', '')]))
  })

  test('give the client library the version of the gateway', () => {
    const { version, publishConfig } = JSON.parse(text('src/client/package.json'))
    expect(version).toBe(packageJson.version)
    expect(publishConfig).toEqual({ access: 'public', provenance: true })
  })
})
