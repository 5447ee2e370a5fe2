/** The Helm chart: its values against their schema, and with Helm its objects for each of the three sets of values. */
import { describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Ajv from 'ajv'
import ipaddr from 'ipaddr.js'
import packageJson from '../package.json'
import { readConfig } from '../src/config/config.ts'
import { isPublicAddress } from '../src/core/validation/public-address.ts'
import { describeNeeding } from './harness/needs.ts'

const chart = join(import.meta.dir, '../deploy/helm/gateway-ai')
const text = (path: string) => readFileSync(join(chart, path), 'utf8')
const sets = readdirSync(join(chart, 'ci')).sort()

type Tree = { readonly [key: string]: unknown }
const isTree = (value: unknown): value is Tree => typeof value === 'object' && value !== null && !Array.isArray(value)
const tree = (value: unknown): Tree => (isTree(value) ? value : {})

/** Merges values as Helm does: objects by key, everything else replaces. */
function merged(base: Tree, over: Tree): Tree {
  const both = Object.entries(over).map(([key, value]) => {
    const old = base[key]
    return [key, isTree(old) && isTree(value) ? merged(old, value) : value]
  })
  return { ...base, ...Object.fromEntries(both) }
}

/** Returns what a path such as `a.b` leads to. */
const at = (value: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>((part, key) => tree(part)[key], value)

describe('deployment', () => {
  test('compose.yaml: runs each service without capabilities and with a memory limit', () => {
    const compose = tree(Bun.YAML.parse(readFileSync(join(import.meta.dir, '../compose.yaml'), 'utf8')))
    const services = Object.entries(tree(compose.services))
    expect(services.map(([name]) => name)).toEqual(['gateway', 'postgres', 'redis'])
    for (const [name, service] of services) {
      expect([name, service]).toEqual([
        name,
        expect.objectContaining({ cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] }),
      ])
      expect([name, at(service, 'mem_limit')]).toEqual([name, expect.stringMatching(/\dg\b/)])
    }
    // Their images start as root, and would need capabilities to become these users.
    expect([at(compose, 'services.postgres.user'), at(compose, 'services.redis.user')]).toEqual(['postgres', 'redis'])
  })

  test('network policy: excludes each range that the page fetcher refuses and a cluster can route', () => {
    const template = text('templates/networkpolicy.yaml')
    const providers = template.slice(
      template.indexOf('# Providers and web pages'),
      template.indexOf('$policy.extraEgress'),
    )
    const excluded = [...providers.matchAll(/[\da-f.:]+\/\d+/g)]
      .map(([range]) => range)
      .filter(range => !range.endsWith('/0'))
    const isExcluded = (address: string) =>
      excluded.some(range => {
        const [parsed, cidr] = [ipaddr.parse(address), ipaddr.parseCIDR(range)]
        return parsed.kind() === cidr[0].kind() && parsed.match(cidr)
      })
    for (const address of [
      ...[
        '10.0.0.1',
        '100.64.0.1',
        '100.100.100.200',
        '168.63.129.16',
        '169.254.169.254',
        '172.31.255.254',
        '192.0.0.192',
      ],
      ...[
        '192.168.1.1',
        '198.18.0.1',
        '198.19.255.254',
        '64:ff9b::a9fe:a9fe',
        '64:ff9b:1::a00:1',
        'fd00:ec2::254',
        'fe80::1',
      ],
    ])
      expect([address, isPublicAddress(address), isExcluded(address)]).toEqual([address, false, true])
    for (const address of ['1.1.1.1', '172.32.0.1', '192.0.1.1', '198.20.0.1', '168.63.129.17', '2606:4700::1111'])
      expect([address, isPublicAddress(address), isExcluded(address)]).toEqual([address, true, false])
  })
})

const defaults = tree(Bun.YAML.parse(text('values.yaml')))
const getValues = (set: string) => merged(defaults, tree(Bun.YAML.parse(text(`ci/${set}`))))
const isValid = new Ajv({ strict: false, logger: false }).compile(JSON.parse(text('values.schema.json')))

describe('chart', () => {
  test('has the version of the gateway, and a set of values for each kind of installation', () => {
    expect(tree(Bun.YAML.parse(text('Chart.yaml'))).appVersion).toBe(packageJson.version)
    expect(sets).toEqual(['autoscaling-values.yaml', 'minimal-values.yaml', 'production-values.yaml'])
  })

  test('describes each value in the schema, and uses no value without a default', () => {
    const properties = tree(at(JSON.parse(text('values.schema.json')), 'properties'))
    expect(
      Object.keys(properties)
        .filter(key => key !== 'global')
        .sort(),
    ).toEqual(Object.keys(defaults).sort())
    const used = readdirSync(join(chart, 'templates')).flatMap(name =>
      [...text(`templates/${name}`).matchAll(/(?:^|[\s($])\.Values\.([\w.]+)/gm)].map(([, path = '']) => path),
    )
    expect(used.length).toBeGreaterThan(40)
    expect(used.filter(path => at(defaults, path) === undefined)).toEqual([])
  })

  test('accepts the three sets of values', () => {
    for (const set of sets)
      expect({ set, isValid: isValid(getValues(set)), errors: isValid.errors }).toMatchObject({ isValid: true })
  })

  test.each([
    ['no image', { image: { repository: '' } }],
    ['no database', { secrets: { database: { name: '' } } }],
    ['a secret among the variables', { environment: { OPENAI_API_KEY: 'sk-x' } }],
    ['a connection string among the variables', { environment: { DATABASE_URL: 'postgres://x' } }],
    ['an unknown value', { replicaCount: 2 }],
    ['a wrong digest', { image: { repository: 'x', digest: 'sha256:abc' } }],
    ['a wrong count of workers', { workers: 'many' }],
  ])('refuses %s', (_, change) => expect(isValid(merged(getValues('minimal-values.yaml'), change))).toBe(false))

  test('passes variables and a configuration file on that the gateway accepts', () => {
    const folder = mkdtempSync(join(tmpdir(), 'gateway-chart-'))
    for (const set of sets) {
      const { config, environment } = getValues(set)
      const path = join(folder, 'config.json')
      writeFileSync(path, JSON.stringify(config))
      const own = Object.fromEntries(Object.entries(tree(environment)).map(([name, value]) => [name, String(value)]))
      expect(() => readConfig({ ...own, OPENAI_API_KEY: 'k', GATEWAY_CONFIG: path })).not.toThrow()
    }
    rmSync(folder, { recursive: true, force: true })
  })
})

/** A Helm that was built from source takes the cluster for an old one. */
const kubeVersion = '1.31.0'

function helm(...words: readonly string[]) {
  const { exitCode, stdout, stderr } = Bun.spawnSync(['helm', ...words], { stdout: 'pipe', stderr: 'pipe' })
  return { exitCode, stdout: stdout.toString(), stderr: stderr.toString() }
}

/** Returns the objects of a set of values by `Kind/name`. */
function getObjects(set: string, ...more: readonly string[]): ReadonlyMap<string, Tree> {
  const { exitCode, stdout, stderr } = helm(
    ...['template', 'prod', chart, '--kube-version', kubeVersion, '--values', join(chart, 'ci', set), ...more],
  )
  if (exitCode !== 0) throw new Error(stderr)
  const documents = stdout.split(/^---$/m).map(part => tree(Bun.YAML.parse(part)))
  return new Map(
    documents
      .filter(document => document.kind !== undefined)
      .map(document => [`${document.kind}/${at(document, 'metadata.name')}`, document]),
  )
}

const getPod = (object: Tree | undefined) => tree(at(object, 'spec.template.spec'))
const getContainers = (pod: Tree) => (Array.isArray(pod.containers) ? pod.containers.map(tree) : [])

describeNeeding('helm', 'rendered by Helm', () => {
  test.each(sets)('Helm chart with %s: passes lint, and runs every pod restricted with secrets by reference', set => {
    expect(
      helm('lint', '--strict', chart, '--kube-version', kubeVersion, '--values', join(chart, 'ci', set)),
    ).toMatchObject({ exitCode: 0 })
    const objects = getObjects(set)
    const pods = [...objects.values()].filter(({ kind }) => kind === 'StatefulSet' || kind === 'Job').map(getPod)
    expect(pods.length).toBe(2)
    for (const pod of pods) {
      expect(pod).toMatchObject({
        automountServiceAccountToken: false,
        securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } },
      })
      for (const container of getContainers(pod))
        expect(container.securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        })
    }
    expect([...objects.values()].filter(({ kind }) => kind === 'Secret')).toEqual([])
    expect(objects.has('NetworkPolicy/prod-gateway-ai')).toBe(true)
    expect(at(objects.get('Job/prod-gateway-ai-migrate'), 'metadata.annotations')).toMatchObject({
      'helm.sh/hook': 'pre-install,pre-upgrade',
    })
  })

  test('Helm chart: sends a host with each probe that the gateway accepts', () => {
    const [container] = getContainers(getPod(getObjects('production-values.yaml').get('StatefulSet/prod-gateway-ai')))
    for (const [probe, path] of [
      ['startupProbe', '/readyz'],
      ['readinessProbe', '/readyz'],
      ['livenessProbe', '/healthz'],
    ] as const)
      expect(at(container, `${probe}.httpGet`)).toMatchObject({
        path,
        httpHeaders: [{ name: 'Host', value: 'gateway.example.com' }],
      })
    expect(container?.image).toStartWith('ghcr.io/example/gateway-ai@sha256:')
  })

  test('Helm chart: scales on the requests in progress, and limits disruption only with several pods', () => {
    const scaled = getObjects('autoscaling-values.yaml')
    expect(at(scaled.get('StatefulSet/prod-gateway-ai'), 'spec.replicas')).toBeUndefined()
    expect(at(scaled.get('HorizontalPodAutoscaler/prod-gateway-ai'), 'spec.metrics')).toEqual([
      {
        type: 'Pods',
        pods: {
          metric: { name: 'gateway_requests_in_flight' },
          target: { type: 'AverageValue', averageValue: '800' },
        },
      },
    ])
    const budget = 'PodDisruptionBudget/prod-gateway-ai'
    expect([...sets].map(set => getObjects(set).has(budget))).toEqual([true, false, true])
  })

  test.each([
    ['several pods without Redis', 'replicas=2', 'More than one replica or worker needs secrets.redis.name'],
    ['several workers without Redis', 'workers=2', 'More than one replica or worker needs secrets.redis.name'],
    ['a drain that outlasts the notice to stop', 'drainTimeoutMs=60000', 'terminationGracePeriodSeconds must be'],
    ['an ingress without a host', 'ingress.enabled=true', 'ingress.host is required'],
    ['an unknown value', 'replicaCount=2', 'replicaCount'],
  ])('Helm chart: refuses %s', (_, value, reason) =>
    expect(() => getObjects('minimal-values.yaml', '--set', value)).toThrow(reason),
  )
})
