/** Values that simulated models create for JSON schemas: valid, small, and taken from the prompt if possible. */
import { describe, expect, test } from 'bun:test'
import { Ajv } from 'ajv'
import fc from 'fast-check'
import { instanceOf } from '../../src/simulator/instance.ts'
import { textMatching } from '../../src/simulator/pattern-text.ts'
import { jsonDescribed } from '../../src/simulator/prompt-json.ts'

const ajv = new Ajv({ strict: false })
for (const [name, format] of Object.entries({
  date: /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$/,
  email: /^[^@\s]+@[^@\s]+\.[^@\s]+$/,
  uri: /^[a-z]+:\/\/\S+$/,
  uuid: /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/,
}))
  ajv.addFormat(name, format)

/** The validator calls these methods on objects, and fails on members of the same names. */
const isComparable = (value: unknown) => !/"(?:constructor|toString|valueOf|__proto__)":/.test(JSON.stringify(value))

function expectValid(schema: object, prompt = '') {
  const value = instanceOf(schema, prompt)
  const isValid = ajv.compile(schema)
  if (!isValid(value))
    throw new Error(`${JSON.stringify(value)} for ${JSON.stringify(schema)}: ${ajv.errorsText(isValid.errors)}`)
  return value
}

const prompts = fc.constantFrom(
  '',
  'What is the weather in Porto for 3 days?',
  'Read src/main.ts, mail "the result" to a.b@example.com by 2026-03-04, and see https://example.com/a?b=c.',
  'limit: 250, unit is celsius, kind=two, -7.5 degrees',
)
const names = fc.constantFrom('city', 'query', 'path', 'limit', 'count', 'email', 'url', 'kind', 'tags', 'a b', 'x')
const patterns = fc.constantFrom(
  '^[a-z]{3,8}$',
  '^\\d{4}-\\d{2}$',
  '^(ab|cd)+$',
  '^[A-Z][a-z]*( [A-Z][a-z]*)?$',
  '^#[0-9a-fA-F]{6}$',
  'x\\.y',
  '^[^\\s@]+@[^\\s@]+$',
  '^(?:GET|POST) /\\w*$',
)
const bounds = fc.tuple(fc.integer({ min: -100, max: 100 }), fc.integer({ min: 0, max: 50 }))

/** Satisfiable schemas: exclusive choices are distinguished by a `kind`. */
const schemas = fc.letrec<{ schema: object; members: Record<string, object> }>(tie => ({
  members: fc.dictionary(names, tie('schema'), { maxKeys: 4, noNullPrototype: true }),
  schema: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom<object>(
      { type: 'boolean' },
      { type: 'null' },
      { type: ['null', 'string'] },
      { const: { a: [1] } },
      { type: 'string', format: 'date' },
      { type: 'string', format: 'email' },
      { type: 'string', format: 'uri' },
      { type: 'string', format: 'uuid' },
      { $ref: '#/$defs/node' },
      { $ref: '#/$defs/tree' },
      { $ref: '#/$defs/left' },
      { not: { type: 'string' } },
      {},
    ),
    fc.record({ type: fc.constant('string'), minLength: fc.nat(30) }, { requiredKeys: ['type'] }),
    fc.nat(30).map(maxLength => ({ type: 'string', maxLength })),
    patterns.map(pattern => ({ type: 'string', pattern })),
    fc
      .uniqueArray(fc.jsonValue({ maxDepth: 1 }).filter(isComparable), {
        minLength: 1,
        maxLength: 3,
        selector: value => JSON.stringify(value),
      })
      .map(options => ({ enum: options })),
    bounds.map(([low, span]) => ({ type: 'integer', minimum: low, maximum: low + span })),
    bounds.map(([low, span]) => ({ type: 'number', exclusiveMinimum: low, exclusiveMaximum: low + span + 1 })),
    bounds.map(([low]) => ({ type: 'integer', minimum: low, multipleOf: 7 })),
    bounds.map(([high]) => ({ type: 'number', maximum: high })),
    fc.record({ type: fc.constant('array'), items: tie('schema'), minItems: fc.nat(3) }),
    fc.nat(4).map(minItems => ({ type: 'array', items: { type: 'string' }, minItems, uniqueItems: true })),
    fc.tuple(tie('members'), fc.boolean(), fc.nat(4)).map(([properties, isClosed, skipped]) => ({
      type: 'object',
      properties,
      required: Object.keys(properties).slice(Math.min(skipped, 2)),
      ...(isClosed ? { additionalProperties: false } : {}),
    })),
    fc.array(tie('schema'), { minLength: 1, maxLength: 3 }).map(options => ({ anyOf: options })),
    fc.array(tie('members'), { minLength: 2, maxLength: 3 }).map(all => ({
      oneOf: all.map((properties, index) => ({
        type: 'object',
        properties: { ...properties, tag: { const: index } },
        required: ['tag', ...Object.keys(properties)],
      })),
    })),
    fc.tuple(tie('schema'), tie('schema'), bounds).map(([one, other, [low, span]]) => ({
      allOf: [
        { type: 'object', properties: { one, n: { type: 'number', minimum: low } }, required: ['one'] },
        { properties: { other, n: { type: 'integer', maximum: low + span } }, required: ['other', 'n'] },
      ],
    })),
    tie('schema').map(value => ({
      type: 'object',
      properties: { kind: { enum: ['plain', 'more'] } },
      required: ['kind'],
      if: { properties: { kind: { const: 'plain' } } },
      ...Object.fromEntries([['then', { properties: { value }, required: ['value'] }]]),
      else: { required: ['other'] },
    })),
  ),
})).schema

const definitions = {
  node: {
    type: 'object',
    properties: { name: { type: 'string' }, next: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] } },
    required: ['name', 'next'],
    additionalProperties: false,
  },
  tree: {
    type: 'object',
    properties: { value: { type: 'integer' }, children: { type: 'array', items: { $ref: '#/$defs/tree' } } },
    required: ['value', 'children'],
  },
  left: { oneOf: [{ $ref: '#/$defs/right' }, { type: 'integer' }] },
  right: { type: 'object', properties: { left: { $ref: '#/$defs/left' } }, required: ['left'] },
}

describe('instanceOf', () => {
  test('creates a valid value for any nesting of schemas', () => {
    fc.assert(
      fc.property(schemas, prompts, (schema, prompt) => {
        expectValid({ $defs: definitions, allOf: [schema] }, prompt)
        expectValid({ $defs: definitions, ...schema }, prompt)
      }),
      { numRuns: 150 },
    )
  })

  test('ends a recursive schema when possible, and returns nothing large otherwise', () => {
    expect(expectValid({ $defs: definitions, $ref: '#/$defs/node' })).toEqual({ name: 'simulated name', next: null })
    const tree = expectValid({ $defs: definitions, $ref: '#/$defs/tree' })
    expect(JSON.stringify(tree).length).toBeLessThan(60)
    expectValid({ $defs: definitions, $ref: '#/$defs/left' })
    // A calculator expression, which refers to itself in only one of its members.
    expectValid({
      anyOf: [
        { type: 'object', properties: { left: { $ref: '#' }, right: { $ref: '#' } }, required: ['left', 'right'] },
        { type: 'number' },
      ],
    })
    expectValid({
      type: 'object',
      properties: { name: { type: 'string' }, parent: { $ref: '#' }, replies: { type: 'array', items: { $ref: '#' } } },
    })
    const branches = Array.from({ length: 20 }, (_, index) => `p${index}`)
    const endless = { required: branches, properties: Object.fromEntries(branches.map(name => [name, { $ref: '#' }])) }
    const nested = (depth: number): object =>
      depth === 0 ? { type: 'string' } : { type: 'array', minItems: 100, items: nested(depth - 1) }
    const choices = { anyOf: branches.map(name => ({ ...endless, title: name })) }
    for (const schema of [
      endless,
      nested(10),
      { allOf: branches.map(() => ({ $ref: '#' })) },
      choices,
      { $ref: '#' },
    ]) {
      expect(JSON.stringify(instanceOf(schema)).length).toBeLessThan(1_000_000)
    }
  })

  test("takes a member's value from the prompt by its name", () => {
    const text = { type: 'string' }
    const of = (properties: Record<string, object>, prompt: string) =>
      expectValid(
        { type: 'object', properties, required: Object.keys(properties), additionalProperties: false },
        prompt,
      )
    expect(
      of(
        { city: text, days: { type: 'integer', minimum: 1, maximum: 7 }, unit: { enum: ['fahrenheit', 'celsius'] } },
        'What will the weather be in New York for the next 5 days, in Celsius?',
      ),
    ).toEqual({ city: 'New York', days: 5, unit: 'celsius' })
    expect(
      of({ query: text, limit: { type: 'integer', maximum: 20 } }, 'Find the best ramen near Ueno station'),
    ).toEqual({
      query: 'Find the best ramen near Ueno station',
      limit: 1,
    })
    expect(of({ search_query: text }, 'Search for "usage based billing" please')).toEqual({
      search_query: 'usage based billing',
    })
    expect(of({ file_path: text }, 'Open src/app/main.ts and explain it.')).toEqual({ file_path: 'src/app/main.ts' })
    expect(of({ path: text }, 'Please read config.json')).toEqual({ path: 'config.json' })
    expect(
      of(
        {
          url: { type: 'string', format: 'uri' },
          to: { type: 'string', format: 'email' },
          date: { type: 'string', format: 'date' },
        },
        'Send https://example.com/a/b, on 2026-03-04.',
      ),
    ).toEqual({ url: 'https://example.com/a/b', to: 'simulated@example.com', date: '2026-03-04' })
    expect(of({ expression: text }, 'Compute 12 * 7 + 1')).toEqual({ expression: '12 * 7 + 1' })
    expect(of({ temperature: { type: 'number' } }, 'Set the temperature to 21.5 in room 4')).toEqual({
      temperature: 21.5,
    })
    expect(of({ max_results: { type: 'integer', maximum: 10 } }, 'Give me 500 results')).toEqual({ max_results: 1 })
    expect(of({ city: { type: 'string', enum: ['Oslo', 'Rome'] } }, 'Is it warm in Rome?')).toEqual({ city: 'Rome' })
    expect(of({ city: { type: 'string', maxLength: 4 } }, 'Is it warm in Reykjavik?')).toEqual({ city: 'simu' })
    expect(of({ city: text }, 'Where, in JSON, in July? I mean Lima')).toEqual({ city: 'Lima' })
    expect(of({ city: text }, '')).toEqual({ city: 'simulated city' })
  })

  test('adds optional members with a value in the prompt, or if nothing is required', () => {
    const properties = { city: { type: 'string' }, language: { type: 'string' } }
    const prompt = 'Is it warm in Rome?'
    expect(expectValid({ type: 'object', properties }, prompt)).toEqual({
      city: 'Rome',
      language: 'simulated language',
    })
    expect(
      expectValid({ type: 'object', properties: { ...properties, id: { type: 'integer' } }, required: ['id'] }, prompt),
    ).toEqual({
      id: 1,
      city: 'Rome',
    })
  })

  test("creates plausible numbers when only the type's bounds are given", () => {
    const safe = { minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER }
    expect([instanceOf({ type: 'integer', ...safe }), instanceOf({ type: 'number', minimum: 0 })]).toEqual([1, 1])
  })

  test('uses own names when references are invalid', () => {
    expect(instanceOf({ $ref: '#/$defs/%' })).toBe('simulated value')
    expect(instanceOf({ type: 'string', format: 'constructor' })).toBe('simulated value')
    expect(instanceOf({ $ref: '#/constructor' })).toBe('simulated value')
  })
})

test('textMatching: creates a matching text for a supported pattern and runs none', () => {
  const parts = fc.oneof(
    fc.constantFrom(
      'a',
      '7',
      '\\d',
      '\\w',
      '\\s',
      '[a-f]',
      '[^a-z]',
      '[\\w.-]',
      '.',
      '\\.',
      '(?:ab|c)',
      '(x[0-9])',
      '(?:q)',
    ),
  )
  const quantified = fc
    .tuple(parts, fc.constantFrom('', '?', '*', '+', '{2}', '{1,3}', '{2,}', '+?'))
    .map(all => all.join(''))
  fc.assert(
    fc.property(fc.array(quantified, { maxLength: 6 }), fc.nat(12), (all, least) => {
      const pattern = `^${all.join('')}$`
      const text = textMatching(pattern, least, 200)
      if (text === null) return
      expect(text).toMatch(new RegExp(pattern, 'u'))
      expect(text.length).toBeGreaterThanOrEqual(least)
    }),
    { numRuns: 300 },
  )
  expect(textMatching('^(?<year>\\d{4})$', 0, 10)).toBe('0000')
  expect(textMatching('^(?=.*\\d)[a-z]+$', 0, 10)).toBeNull()
  expect(textMatching('^(a)\\1$', 0, 10)).toBeNull()
})

describe('jsonDescribed', () => {
  const made = (...texts: string[]) => {
    const described = jsonDescribed(texts)
    return described === null ? null : expectValid(described.schema, described.subject)
  }

  test('creates an object of the fields that a prompt names', () => {
    expect(made('Answer in JSON with fields a and b.')).toEqual({ a: 'simulated a', b: 'simulated b' })
    expect(made('Describe Rome. Reply only with JSON, with the keys "name", population and is_capital')).toEqual({
      name: 'Rome',
      population: 1,
      is_capital: true,
    })
    expect(made('Return a JSON object containing title (string), year (integer) and tags (list).')).toEqual({
      title: 'simulated title',
      year: 1,
      tags: ['simulated tags'],
    })
    expect(made('Give me a JSON array of objects with the keys: id, score')).toEqual([
      { id: 'simulated id', score: 1 },
      { id: 'simulated id 2', score: 2 },
    ])
    expect(made('You output valid JSON with fields: answer.', 'What is the capital of France?')).toEqual({
      answer: 'simulated answer',
    })
  })

  test('follows an example or schema in the prompt', () => {
    expect(
      made('Extract it as JSON like {"name": "<string>", "age": 0, "open": false, "tags": ["string"], "kind": "a|b"}'),
    ).toEqual({ name: 'simulated name', age: 1, open: true, tags: ['simulated tags'], kind: 'a' })
    expect(made('Respond with JSON: {"city": ..., "days": ...}. What is the weather in Oslo?')).toEqual({
      city: 'Oslo',
      days: 'simulated days',
    })
    const schema = { type: 'object', properties: { n: { type: 'integer', minimum: 3 } }, required: ['n'] }
    expect(made(`Output only JSON that conforms to this schema: ${JSON.stringify(schema)}`)).toEqual({ n: 3 })
  })

  test('returns null when JSON is only mentioned', () => {
    for (const text of [
      'What is JSON?',
      'How do I return JSON from Express?',
      'Write a function that returns JSON with fields a and b.',
      'Explain why JSON is used in web APIs.',
      'Tell me about Jason.',
      '',
    ])
      expect([text, jsonDescribed([text])]).toEqual([text, null])
  })
})
