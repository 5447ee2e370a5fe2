/** Routing, constraints and rules of all requests of the account. */
import type { AccountToday } from '../../console/account/schemas.ts'
import { formatConstraints } from '../../core/policy/constraints-text.ts'
import { callApi } from '../state/api.ts'
import { constraintsField, policyFields, splitList, toAmount, toConstraints, toPairs } from '../state/keys.ts'
import type { Resource } from '../state/resource.ts'
import { may } from '../state/session.ts'
import { type Field, InlineForm, useForm } from './form.tsx'
import { Card, showToast } from './page.tsx'
import { action, ResourceView, type RowAction, removal } from './resource.tsx'

export type AccountProps = { readonly account: AccountToday; readonly onChange: (account: AccountToday) => void }

const baselineField = {
  param: 'baseline_model',
  label: 'Baseline of savings',
  suggest: 'models',
  hint: 'The model that you would use without routing. Empty: the operator’s, or the strongest.',
} as const

export function AccountPolicy({ account, onChange }: AccountProps) {
  const start = {
    fallback: `${account.fallback ?? 'any'}`,
    continue: `${account.continue ?? ''}`,
    hedge: account.hedge ? 'on' : 'off',
    baseline_model: account.baseline_model ?? '',
    constraints: formatConstraints(account.constraints),
  }
  const form = useForm(start, async ({ fallback, continue: cut, hedge, baseline_model: baseline, constraints }) => {
    const body = {
      ...{ fallback, continue: cut || null, hedge: hedge === 'on', constraints: toConstraints(constraints) },
      // A baseline that the operator no longer configures must not refuse the others.
      ...(baseline === start.baseline_model ? {} : { baseline_model: baseline.trim() || null }),
    }
    onChange(await callApi('PATCH /api/v1/account', { body }))
    showToast('Routing saved')
  })
  return (
    <Card title="Routing" about="For all requests of the account.">
      <InlineForm
        form={form}
        fields={[
          ...policyFields(form.values.fallback, { continue: 'As the request says' }),
          baselineField,
          constraintsField,
        ]}
        submit={['Save routing', 'Saving…']}
        isReadOnly={!may('account.change')}
      />
    </Card>
  )
}

type Rule = AccountToday['rules'][number]

const toLists = (when: Rule['when'], name: 'model' | 'key' | 'project') => [when?.[name] ?? []].flat().join(', ')

/** `team=search|ads, env=prod` */
const toNamed = (values: Readonly<Record<string, string | readonly string[]>> = {}) =>
  Object.entries(values)
    .map(([name, value]) => `${name}=${[value].flat().join('|')}`)
    .join(', ')

/** Returns the texts of a rule; null = a new one. */
function toTexts(rule: Rule | null) {
  const { name = '', when, rewrite, deny, split } = rule ?? {}
  return {
    name,
    action: deny === true ? 'deny' : split === undefined ? 'rewrite' : 'split',
    target: rewrite ?? (split ?? []).map(({ model, percent }) => `${model}=${percent}`).join(', '),
    model: toLists(when, 'model'),
    tag: toNamed(when?.tag),
    key: toLists(when, 'key'),
    project: toLists(when, 'project'),
    header: toNamed(when?.header),
    above_tokens: `${when?.size?.above_tokens ?? ''}`,
    up_to_tokens: `${when?.size?.up_to_tokens ?? ''}`,
  }
}
type RuleTexts = ReturnType<typeof toTexts>

/** Returns an object without its empty fields. */
const present = (fields: Readonly<Record<string, string | number | object | undefined>>) =>
  Object.fromEntries(
    Object.entries(fields).filter(
      ([, value]) => value !== undefined && (typeof value !== 'object' || Object.keys(value).length > 0),
    ),
  )

/** Returns the rule of texts. The gateway checks it. */
function toRule({ name, action: kind, target, ...texts }: RuleTexts) {
  const lists = (param: 'tag' | 'header') =>
    Object.fromEntries(Object.entries(toPairs(param, texts[param])).map(([key, value]) => [key, value.split('|')]))
  const size = present({
    above_tokens: toAmount('above_tokens', texts.above_tokens) ?? undefined,
    up_to_tokens: toAmount('up_to_tokens', texts.up_to_tokens) ?? undefined,
  })
  const [model, key, project] = [texts.model, texts.key, texts.project].map(splitList)
  const shares = () =>
    Object.entries(toPairs('target', target)).map(([share, percent]) => ({
      model: share,
      percent: toAmount('target', percent),
    }))
  return {
    name: name.trim(),
    ...present({ when: present({ model, tag: lists('tag'), key, project, header: lists('header'), size }) }),
    ...(kind === 'deny' ? { deny: true } : kind === 'split' ? { split: shares() } : { rewrite: target.trim() }),
  }
}

const actionWords: Readonly<Record<string, string>> = {
  rewrite: 'Change the model',
  split: 'Share requests',
  deny: 'Deny',
}

const targetFields: Readonly<Record<string, readonly Field<'target'>[]>> = {
  rewrite: [
    { param: 'target', label: 'To the model', required: true, suggest: 'models', placeholder: 'openai/gpt-5.5' },
  ],
  split: [
    {
      param: 'target',
      label: 'Percent by model',
      required: true,
      placeholder: 'openai/gpt-6.1-terra=10',
      hint: 'The rest stays. A conversation stays on its side.',
    },
  ],
}

const conditionFields: readonly Field<keyof RuleTexts>[] = [
  {
    param: 'model',
    label: 'Requested model',
    suggest: 'models',
    placeholder: 'gpt-4*, gateway-ai',
    hint: 'If empty, any.',
  },
  { param: 'tag', label: 'Tags', placeholder: 'team=search|ads' },
  { param: 'key', label: 'Key IDs', isFolded: true },
  { param: 'project', label: 'Project IDs', isFolded: true },
  { param: 'header', label: 'Request headers', isFolded: true, placeholder: 'x-client=batch*' },
  { param: 'above_tokens', label: 'Input above (tokens)', type: 'number', min: '0', isFolded: true },
  { param: 'up_to_tokens', label: 'Input up to (tokens)', type: 'number', min: '0', isFolded: true },
]

/** Values with separators of the form would change in it. */
const fitsForm = ({ when }: Rule) =>
  ![...Object.values(when?.tag ?? {}), ...Object.values(when?.header ?? {}), when?.model ?? []]
    .flat()
    .some(value => /[,|]/.test(value))

const tellConditions = (rule: Rule) => {
  const texts = toTexts(rule)
  const held = conditionFields.flatMap(({ param, label }) => (texts[param] === '' ? [] : `${label}: ${texts[param]}`))
  return held.join('; ') || 'All requests'
}

const tellEffect = (rule: Rule) => {
  const { action: kind, target } = toTexts(rule)
  return `${actionWords[kind]}${target === '' ? '' : `: ${target}`}`
}

/** The rules of the account. They act in this order. */
export function AccountRules({ resource }: { readonly resource: Resource<AccountToday> }) {
  const rules = resource.data?.rules ?? []
  const store = async (next: readonly object[]) =>
    resource.set(await callApi('PATCH /api/v1/account', { body: { rules: next } }))
  const save = action({
    text: (rule: Rule | null) => (rule === null ? 'Add rule' : 'Change'),
    label: rule => (rule === null ? 'Add rule' : `Change ${rule.name}`),
    isFor: rule => rule === null || fitsForm(rule),
    start: toTexts,
    dialog: (rule, { action: kind }) => ({
      title: rule === null ? 'Add rule' : `Change “${rule.name}”`,
      submit: 'Save',
      fields: [
        { param: 'name', label: 'Name', required: true, maxLength: 64, placeholder: 'canary' },
        { param: 'action', label: 'Action', choices: Object.entries(actionWords) },
        ...(targetFields[kind] ?? []),
        ...conditionFields,
      ],
    }),
    perform: async (rule, texts) => {
      const next = toRule(texts)
      await store(rule === null ? [...rules, next] : rules.map(other => (other.name === rule.name ? next : other)))
      return `Rule “${next.name}” saved`
    },
  })
  const moveUp: RowAction<Rule> = {
    text: () => 'Move up',
    label: ({ name }) => `Move ${name} up`,
    isFor: ({ name }) => rules[0]?.name !== name,
    perform: async rule => {
      const at = rules.findIndex(({ name }) => name === rule.name)
      await store(rules.with(at - 1, rule).with(at, rules[at - 1] ?? rule))
      return null
    },
  }
  const remove = removal<Rule>({
    verb: 'Remove',
    name: ({ name }) => name,
    about: () => 'Requests are no longer changed or denied by it within 1 s.',
    remove: rule => store(rules.filter(({ name }) => name !== rule.name)),
    done: ({ name }) => `Rule “${name}” removed`,
  })
  const mayChange = may('account.change')
  return (
    <ResourceView
      title="Rules"
      about="They change the requested model, deny requests, or share them between models, in this order."
      what="the rules"
      resource={resource}
      rows={account => account.rules}
      rowKey={({ name }) => name}
      columns={[
        {
          name: 'Rule',
          isHeading: true,
          show: rule => (
            <>
              {rule.name} <span class="block">{tellEffect(rule)}</span>
              <span class="block hint">{tellConditions(rule)}</span>
            </>
          ),
        },
      ]}
      empty={['No rules', 'The operator of the gateway can have some for all accounts.']}
      create={mayChange && save}
      actions={mayChange ? [save, moveUp, remove] : []}
    />
  )
}
