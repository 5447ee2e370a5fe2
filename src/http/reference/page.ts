/** The document as one static HTML page without a script, so that it can be printed and searched everywhere. */
import type { ApiDocument, Media, Operation, Parameter, ResponseDoc } from './document.ts'
import type { JsonSchema } from './schemas.ts'

type ReferenceOperation = { readonly method: string; readonly path: string; readonly operation: Operation }

/** Returns the page as HTML. */
export function getPage(document: ApiDocument): string {
  // A browser sends preflights on its own: no reader calls them.
  const placed = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .map(([method, operation]): ReferenceOperation => ({ method: method.toUpperCase(), path, operation }))
      .filter(({ method }) => method !== 'OPTIONS'),
  )
  const sections = document.tags.map(tag => ({
    ...tag,
    placed: placed.filter(({ operation }) => operation.tags.includes(tag.name)),
  }))
  const { info, components } = document
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${info.title} ${info.version} · API reference</title>
<link rel="stylesheet" href="/docs/style.css">
</head>
<body>
<header>
<a class="skip" href="#main">To the reference</a>
<p class="brand">${info.title} <span>${info.version}</span></p>
<p><a href="/">Dashboard</a> · <a href="/openapi.json">openapi.json</a></p>
</header>
<div class="columns">
<nav aria-label="Endpoints">
${sections.map(
  ({ name, placed: inside }) => html`<details open><summary>${name}</summary><ul>
${inside.map(
  ({ method, operation }) =>
    html`<li><a href="#${operation.operationId}"><span class="method ${method.toLowerCase()}">${method}</span> ${markdown(operation.summary)}</a></li>`,
)}</ul></details>`,
)}
<details><summary>Objects</summary><ul>
${Object.keys(components.schemas).map(name => html`<li><a href="#${name}">${name}</a></li>`)}</ul></details>
</nav>
<main id="main">
<h1>API reference</h1>
<p class="lead">${info.summary}</p>
${info.description.split('\n\n').map(paragraph => html`<p>${markdown(paragraph)}</p>`)}
<h2 id="authentication">Authentication</h2>
<p>${markdown('An **API key** goes into `Authorization: Bearer gw_live_…` or `x-api-key`. A **session token** or a **management key** goes into `Authorization: Bearer …`. An API key does not replace them, nor they an API key.')}</p>
${sections.map(
  ({ name, description, placed: inside }) => html`<section aria-label="${name}">
<h2>${name}</h2><p>${description}</p>
${inside.map(endpoint)}
</section>`,
)}
<section aria-label="Objects">
<h2>Objects</h2>
${Object.entries(components.schemas).map(
  ([name, schema]) => html`<article id="${name}"><h3>${name}</h3>${fields(schema)}</article>`,
)}
</section>
</main>
</div>
</body>
</html>
`.text
}

function endpoint({ method, path, operation }: ReferenceOperation): Markup {
  const { operationId, summary, description, parameters, requestBody, responses } = operation
  const body = requestBody?.content['application/json']
  return html`<article id="${operationId}">
<h3><a href="#${operationId}">${markdown(summary)}</a></h3>
<p class="route"><span class="method ${method.toLowerCase()}">${method}</span> <code>${path}</code> <span class="who">${authenticationText(operation)}</span></p>
${description === undefined ? '' : html`<p>${markdown(description)}</p>`}
${parameters.length === 0 ? '' : html`<h4>Parameters</h4><dl>${parameters.map(parameter)}</dl>`}
${body === undefined ? '' : html`<h4>Body${requestBody?.required ? '' : ' (optional)'}</h4>${fields(body.schema)}${examples(operation, method, path, body)}`}
<h4>Answers</h4>
${Object.entries(responses).map(([status, answer]) => getAnswer(status, answer))}
</article>
`
}

function authenticationText({ security, 'x-action': action }: Operation): string {
  const schemes = security.flatMap(way => Object.keys(way))
  if (schemes.length === 0) return 'no authentication'
  const ways = [schemes.includes('apiKey') ? 'an API key' : '', schemes.includes('session') ? 'a session' : '']
  const needs = ways.filter(way => way !== '').join(' or ')
  return action === undefined ? `needs ${needs}` : `needs ${needs} that may ${action}`
}

function parameter({ name, in: place, required, schema }: Parameter): Markup {
  return field(name, required, schema, place)
}

function examples({ security }: Operation, method: string, path: string, { examples: named = {} }: Media): Markup[] {
  const credential = security.length === 0 ? '' : ` \\\n  -H 'authorization: Bearer …'`
  return Object.entries(named).map(([name, { value }], index) => {
    const said = `curl -X ${method} {base_url}${path}${credential} \\
  -H 'content-type: application/json' \\
  -d '${JSON.stringify(value, null, 2)}'`
    // Only the first example is open; the others are closed to keep the page short.
    return html`<details${raw(index === 0 ? ' open' : '')}><summary>Example: ${name}</summary><pre tabindex="0"><code>${said}</code></pre></details>`
  })
}

function getAnswer(status: string, { description, headers, content = {} }: ResponseDoc): Markup {
  return html`<details class="answer"><summary><span class="status s${status[0] ?? ''}">${status}</span> ${markdown(description)}</summary>
${Object.entries(content).map(
  ([type, { schema, example }]) => html`<p class="type"><code>${type}</code></p>${fields(schema)}
${example === undefined || typeof example === 'string' ? '' : html`<pre tabindex="0"><code>${JSON.stringify(example, null, 2)}</code></pre>`}`,
)}
<p class="headers">Headers: ${Object.keys(headers).map(name => html`<code>${name}</code> `)}</p>
</details>`
}

/** Describes a schema: its fields if it is an object, otherwise its type. */
function fields(schema: JsonSchema): Markup {
  const properties = Object.entries(schema.properties ?? {})
  if (properties.length === 0) return html`<p>${getType(schema)}</p>`
  return html`<dl>${properties.map(([name, property]) => field(name, schema.required?.includes(name) ?? false, property))}</dl>`
}

function field(name: string, required: boolean, schema: JsonSchema, place: string | null = null): Markup {
  const inner = findInner(schema)
  return html`<dt><code>${name}</code>${required ? html` <span class="required">required</span>` : ''}</dt>
<dd>${place === null ? '' : html`<span class="place">${place}</span> `}<span class="type">${getType(schema)}</span>${
    schema.description === undefined ? '' : html` · ${markdown(schema.description)}`
  }${inner === null ? '' : html`<details><summary>fields</summary>${fields(inner)}</details>`}</dd>`
}

/** Returns the unnamed object that a field contains, directly or in a list. */
function findInner(schema: JsonSchema): JsonSchema | null {
  if (schema.properties !== undefined) return schema
  if (schema.items !== undefined) return findInner(schema.items)
  const objects = (schema.anyOf ?? []).map(findInner).filter(inner => inner !== null)
  return objects.length === 1 ? (objects[0] ?? null) : null
}

function getType(schema: JsonSchema): Markup {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split('/').at(-1) ?? ''
    return html`<a href="#${name}">${name}</a>`
  }
  if (schema.contentSchema !== undefined) return html`JSON: ${getType(schema.contentSchema)}`
  if (schema.const !== undefined) return html`<code>${JSON.stringify(schema.const)}</code>`
  if (schema.enum !== undefined) return listed(schema.enum.map(item => html`<code>${JSON.stringify(item)}</code>`))
  if (schema.anyOf !== undefined) return listed(schema.anyOf.map(getType))
  if (schema.type === 'array') return html`list of ${schema.items === undefined ? 'values' : getType(schema.items)}`
  const bounds = getBounds(schema)
  return html`${schema.format ?? schema.type ?? 'any value'}${bounds === '' ? '' : html` <span class="bounds">${bounds}</span>`}`
}

function listed(choices: readonly Markup[]): Markup {
  return raw(choices.map(({ text }) => text).join(' or '))
}

const boundNames = [
  ['minimum', 'maximum', ''],
  ['minLength', 'maxLength', ' characters'],
  ['minItems', 'maxItems', ' items'],
  ['minProperties', 'maxProperties', ' fields'],
] as const

function getBounds(schema: JsonSchema): string {
  for (const [least, most, unit] of boundNames) {
    const [from, to] = [schema[least], schema[most]]
    if (from !== undefined && to !== undefined) return `${from} to ${to}${unit}`
    if (to !== undefined) return `at most ${to}${unit}`
    if (from !== undefined) return `at least ${from}${unit}`
  }
  return ''
}

/** HTML templates that escape every value except markup. */

type Markup = { readonly text: string }

type Value = string | number | Markup | readonly Markup[]

/** Template tag: escapes values; includes markup and lists of it unchanged. */
function html(pieces: TemplateStringsArray, ...values: readonly Value[]): Markup {
  return raw(pieces.map((piece, index) => piece + (index < values.length ? written(values[index] ?? '') : '')).join(''))
}

/** Text that is already HTML. */
function raw(text: string): Markup {
  return { text }
}

/** The Markdown subset of descriptions: `code` and **strong**. */
function markdown(text: string): Markup {
  return raw(
    escaped(text)
      .replaceAll(/`([^`]+)`/g, '<code>$1</code>')
      .replaceAll(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>'),
  )
}

function written(value: Value): string {
  if (typeof value === 'string') return escaped(value)
  if (typeof value === 'number') return String(value)
  return 'text' in value ? value.text : value.map(({ text }) => text).join('')
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, character => entities[character] ?? character)
}
