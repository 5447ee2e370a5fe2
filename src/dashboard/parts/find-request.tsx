import { useState } from 'preact/hooks'
import { useAction } from '../state/action.ts'
import { callApi } from '../state/api.ts'
import { hrefTo } from '../state/href.ts'
import { Button } from './button.tsx'
import { TextField } from './field.tsx'
import { FailureNotice } from './notice.tsx'

/** Opens the page of a request by any of its IDs, or says that none has it. */
export function FindRequest() {
  const [id, setId] = useState('')
  const finding = useAction(async () => {
    const { request_id } = await callApi('GET /api/v1/requests/:id', { params: { id: id.trim() } })
    location.assign(hrefTo(`requests/${encodeURIComponent(request_id)}`))
  })
  return (
    <search class="card">
      <form
        class="row"
        onSubmit={event => {
          event.preventDefault()
          void finding.run()
        }}
      >
        <TextField
          label="Find a request by ID"
          type="search"
          autocomplete="off"
          required
          maxLength={128}
          hint="The x-request-id header, the ID of a response, the ID that a provider gave, or the request ID of an already_completed error."
          value={id}
          onText={text => {
            setId(text)
            finding.clear()
          }}
        />
        <Button text={finding.isBusy ? 'Searching…' : 'Find request'} type="submit" disabled={finding.isBusy} />
      </form>
      {finding.failure !== null && <FailureNotice failure={finding.failure} />}
    </search>
  )
}
