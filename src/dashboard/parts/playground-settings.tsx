import { useMemo } from 'preact/hooks'
import { reasoningEfforts, type Strategy, strategies } from '../../core/chat/chat.ts'
import type { ShownModel } from '../../dialects/models/schemas.ts'
import { humanize } from '../state/format.ts'
import {
  addLane,
  automaticModel,
  lanes,
  mostLanes,
  type PlaygroundOptions,
  parseTools,
  setModel,
  settings,
} from '../state/playground.ts'
import { Button } from './controls.tsx'
import { SelectField, type SelectProps, Switch } from './field.tsx'
import { FormFields } from './form.tsx'
import { Card } from './page.tsx'

const strategyWords: Readonly<Record<Strategy, string>> = {
  balanced: 'fixed weights',
  quality: 'highest quality',
  cost: 'lowest cost',
  speed: 'lowest latency',
}

type ModelChoiceProps = Pick<SelectProps, 'label' | 'value' | 'onChoice'> & { readonly models: readonly ShownModel[] }

/** A strategy, or a model of the catalog; empty = none yet. */
export function ModelChoice({ models, ...select }: ModelChoiceProps) {
  const providers = Map.groupBy(
    models.filter(({ status }) => status !== 'retired'),
    ({ provider }) => provider,
  )
  return (
    <SelectField
      {...select}
      hint={select.value === automaticModel ? 'The gateway chooses a model for each prompt.' : undefined}
    >
      {select.value === '' && <option value="">Choose a model</option>}
      <optgroup label="Automatic">
        <option value={automaticModel}>Automatic</option>
        {strategies.map(strategy => (
          <option key={strategy} value={`${automaticModel}/${strategy}`}>
            {humanize(strategy)}: {strategyWords[strategy]}
          </option>
        ))}
      </optgroup>
      {[...providers].map(([provider, ofProvider]) => (
        <optgroup key={provider} label={provider}>
          {ofProvider.map(({ name, display_name }) => (
            <option key={name} value={name}>
              {display_name}
            </option>
          ))}
        </optgroup>
      ))}
    </SelectField>
  )
}

/** Settings of every conversation of the playground. */
export function PlaygroundSettings({ models }: { readonly models: readonly ShownModel[] }) {
  const now = settings.value
  const set = (part: Partial<PlaygroundOptions>) => {
    settings.value = { ...now, ...part }
  }
  const { enhances: _, usesWeb: _web, isSmooth: _smooth, ...texts } = now
  const form = { values: texts, set, failure: null }
  const isWide = useMemo(() => matchMedia('(min-width: 1000px)').matches, [])
  const [lane, ...others] = lanes.value
  const isToolsWrong = now.tools.trim() !== '' && parseTools(now.tools) === undefined
  return (
    <Card title="Request settings" class="options">
      {lane !== undefined && others.length === 0 && (
        <ModelChoice label="Model" value={lane.model} onChoice={model => setModel(lane.id, model)} models={models} />
      )}
      {lanes.value.length < mostLanes && (
        <ModelChoice
          label={others.length === 0 ? 'Compare with' : 'Add model'}
          value=""
          onChoice={addLane}
          models={models}
        />
      )}
      <details open={isWide}>
        <summary>Options</summary>
        <div class="stack">
          {switches.map(([name, label, hint]) => (
            <Switch key={name} {...{ label, hint }} isOn={now[name]} onSwitch={isOn => set({ [name]: isOn })} />
          ))}
          <FormFields form={form} fields={[{ param: 'system', label: 'System message', rows: 3 }, keyField]} />
        </div>
      </details>
      <details>
        <summary>Parameters and tools</summary>
        <div class="stack">
          <FormFields
            form={form}
            fields={[
              ...parameterFields,
              {
                param: 'tools',
                label: 'Tools (JSON)',
                rows: 3,
                hint: isToolsWrong
                  ? 'Not sent: this is not a JSON array of functions.'
                  : 'An array of functions. Calls are shown, not run.',
              },
            ]}
          />
          {now.tools === '' && (
            <Button text="Insert example tool" look="small" onClick={() => set({ tools: exampleTools })} />
          )}
        </div>
      </details>
    </Card>
  )
}

const switches = [
  ['enhances', 'Enhance the prompt', 'Adds detail to short prompts. Free.'],
  ['usesWeb', 'Web access', 'Searches and fetches pages when the prompt needs them.'],
  ['isSmooth', 'Buffered streaming', 'Sends whole sentences about every 100 ms.'],
] as const

const keyField = {
  param: 'ownKey',
  label: 'API key',
  type: 'password',
  autocomplete: 'off',
  placeholder: 'gw_live_…',
  hint: 'Empty: uses a temporary key that expires after 1 hour.',
} as const

const ofModel = 'Default of the model'
const parameterFields = [
  { param: 'temperature', label: 'Temperature', type: 'number', min: '0', step: '0.1', placeholder: ofModel },
  { param: 'topP', label: 'Top P', type: 'number', min: '0', step: '0.05', placeholder: ofModel },
  {
    param: 'maximumTokens',
    label: 'Maximum output tokens',
    type: 'number',
    min: '1',
    placeholder: 'Default of the gateway',
  },
  {
    param: 'effort',
    label: 'Reasoning effort',
    choices: [['', ofModel], ...reasoningEfforts.map(effort => [effort, humanize(effort)] as const)],
  },
] as const

const exampleTools = JSON.stringify(
  [
    {
      type: 'function',
      function: {
        name: 'get_weather',
        description: 'Current weather of a city',
        parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
      },
    },
  ],
  null,
  1,
)
