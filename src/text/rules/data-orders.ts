/**
 * Patterns for instructions to a model inside text that it reads: documents, tool results, fetched pages. Text there
 * has no authority: addressing the model, asking it to hide something from the user, or giving it a new task is an
 * attack. A report about such instructions ("attackers hide instructions in pages") is not.
 */

const model =
  'ai|ais|llm|llms|chatgpt|gpt|claude|copilot|gemini|chatbot|ai-assistant|ai-assistants|ai-agent|ai-agents|ai-model|ai-models|language-model|language-models'
const deed =
  'ignore|disregard|forget|reply|respond|answer|say|tell|write|output|print|include|mention|insert|add|append|send|forward|email|upload|recommend|rank|rate|click|visit|open|execute|run|delete|transfer|stop|reveal|repeat|approve|grant|give'

/** Patterns that count anywhere in the text. */
export const dataOrders: readonly string[] = [
  `if|when|since|because you ~1 an|a|the ~1 ${model}|assistant|bot|model ~6 ${deed}`,
  `note|notice|message|attention|instruction|instructions|reminder|order|memo to|for ~2 ${model} ~14 ${deed}`,
  `dear|hey|hello|attention ${model}|assistant ~6 ${deed}`,
  `any|every|all|the ~1 ${model} ~1 reading|processing|summarizing|summarising|parsing|scanning|visiting|that|which|who ~6 must|should|shall|needs|has ~3 ${deed}`,
  `${model} ~3 reading|processing|summarizing|summarising|parsing|analyzing ~4 this ~6 must|should|shall|please ~3 ${deed}`,
  'do-not|don-t|dont|never ~1 tell|inform|alert|notify|warn|show ~2 the|your user|human|reader|operator ~3 this|that|about|of|what|instruction|instructions',
  'without telling|informing|notifying|alerting|asking the user|human',
  `instead-of summarizing|summarising|answering|translating|analyzing|reviewing|completing ~8 ${deed}`,
  'your new|real|actual|only|true task|goal|objective|mission|instruction|instructions is|are to',
  `begin|start|new|updated|hidden|secret|override ~1 system|admin|developer|assistant|ai instructions|instruction|prompt|message|override`,
  'system|admin|developer override|prompt-override ~8 ignore|disregard|you|now',
  'ignore|disregard|forget|override|bypass ~2 all|any|your|previous|prior|earlier|the ~2 previous|prior|earlier|preceding|original|initial|system|safety|user|user-s ~1 instructions|instruction|prompt|directives|guidelines|rules|request|question|task ~2 and|then|now|instead|you',
  'system you ~1 are now',
  'print|reveal|repeat|show|obey your ~1 instructions|prompt',
  'forget|ignore the question|request|task and',
  'stop summarizing|summarising|translating|what-you-are-doing|your-task|the-current-task ~6 and|now|instead',
  'from now on|onwards ~2 you ~2 an-ai|answer|respond|reply|act|obey|ignore|refuse|recommend|speak|pretend',
  'you|must|assistant|ai ~3 exfiltrate|leak ~6 conversation|data|secrets|keys|history|prompt|password|passwords',
  'reveal|print|repeat|output|include|leak|send ~2 your|the ~1 system-prompt|system-message|hidden-instructions|initial-instructions|conversation-history|chat-history|api-key|api-keys',
  // German, Dutch
  'hinweis|anweisung|nachricht|achtung an|für ~2 ki|ki-assistenten|ki-modelle|sprachmodell|sprachmodelle|assistenten ~14 ignoriere|ignorieren|schreibe|schreiben|antworte|antworten|sende|senden|empfiehl|empfehlen|sag|sage',
  'wenn|falls du|sie ~2 ki|sprachmodell|assistent ~8 ignoriere|schreibe|antworte|sende|empfiehl|sage|ignorieren|schreiben|antworten|senden|empfehlen',
  'sag|sage|sagen|verrate|erzähle|teile ~1 dem|der nutzer|nutzerin|benutzer ~2 nichts|nicht',
  'deine|ihre neue|eigentliche aufgabe ist|lautet',
  'als|indien je ~2 ai|taalmodel|assistent ~2 bent ~8 negeer|schrijf|antwoord|stuur|zeg',
  'vertel|zeg ~1 de gebruiker ~2 niets|niet',
  // French
  'note|message|instruction|instructions|consigne|attention à|pour|aux|au ~2 ia|assistant|assistants|modèle|modèles ~14 ignore|ignorez|écris|écrivez|réponds|répondez|envoie|envoyez|recommande|recommandez|dis|dites',
  'si tu|vous ~2 une|un ia|assistant|modèle ~10 ignore|ignorez|écris|écrivez|réponds|répondez|envoie|envoyez|recommande|recommandez|dis|dites',
  'ne dis|dites|révèle|révélez ~2 à-l-utilisateur|utilisateur',
  'ta|votre nouvelle|véritable tâche|mission est',
  // Spanish, Portuguese, Italian
  'nota|mensaje|instrucción|instrucciones|atención|aviso para|a ~3 ia|asistente|asistentes|modelo|modelos ~14 ignora|ignore|escribe|escriba|responde|responda|envía|envíe|recomienda|recomiende|di|diga',
  'si eres|es ~1 una|un ia|asistente|modelo ~10 ignora|ignore|escribe|escriba|responde|responda|envía|envíe|recomienda|recomiende|di|diga',
  'no ~2 digas|diga|informes|informe|menciones|mencione ~1 al usuario',
  'tu|su nueva|verdadera tarea|misión es',
  'nota|mensagem|instrução|instruções|atenção|aviso para|a|à ~3 ia|assistente|assistentes|modelo|modelos ~14 ignore|ignora|escreva|escreve|responda|responde|envie|envia|recomende|diga',
  'se você|tu ~2 uma|um ia|assistente|modelo ~10 ignore|escreva|responda|envie|recomende|diga',
  'não ~2 diga|conte|informe|mencione ~1 ao usuário|utilizador',
  'sua|tua nova|verdadeira tarefa|missão é',
  'nota|messaggio|istruzione|istruzioni|attenzione per|a|ai|agli ~3 ia|ai|assistente|assistenti|modello|modelli ~14 ignora|ignorate|scrivi|scrivete|rispondi|rispondete|invia|inviate|consiglia|di',
  'se sei un|una|un-assistente|assistente|modello|ia ~10 ignora|scrivi|rispondi|invia|consiglia|di',
  'non ~1 dire|dirlo|rivelare|informare ~2 all-utente|utente',
  // Polish, Russian, Ukrainian, Turkish
  'jeśli|jeżeli jesteś ~2 ai|si|asystentem|modelem|botem ~10 zignoruj|napisz|odpowiedz|wyślij|poleć|powiedz',
  'nie mów|informuj ~1 użytkownikowi|użytkownika',
  'если ты|вы ~2 ии|ассистент|модель|бот|нейросеть ~10 игнорируй|игнорируйте|напиши|напишите|ответь|ответьте|отправь|отправьте|скажи|скажите|рекомендуй|рекомендуйте',
  'сообщение|инструкция|указание|внимание для ~2 ии|ассистента|модели|нейросети|бота ~14 игнорируй|игнорируйте|напиши|напишите|ответь|ответьте|отправь|отправьте|скажи|скажите|рекомендуй',
  'не говори|говорите|сообщай|сообщайте ~2 пользователю',
  'твоя|ваша новая|настоящая задача',
  'якщо ти|ви ~2 ші|асистент|модель|бот ~10 ігноруй|напиши|відповідай|надішли|скажи|рекомендуй',
  'не кажи|кажіть|повідомляй ~2 користувачу|користувачеві',
  'yapay-zeka ~10 yoksay|yaz|yanıtla|cevapla|gönder|söyle|öner',
  'kullanıcıya ~2 söyleme|bildirme|belirtme',
  // Arabic, Persian, Hebrew
  'إلى|الى ~1 الذكاء|المساعد|نموذج ~12 تجاهل|اكتب|أرسل|ارسل|أجب|قل',
  'لا تخبر|تخبري|تقل المستخدم',
  'اگر ~2 هوش|دستیار|مدل ~12 نادیده|بنویس|بفرست|بگو|ارسال',
  'به کاربر ~2 نگو|نگویید',
  'אם אתה ~2 בינה|עוזר|מודל ~10 התעלם|כתוב|שלח|ענה|אמור',
  'אל תספר|תגיד למשתמש',
  // Hindi, Bengali, Indonesian, Vietnamese, Swahili
  'अगर|यदि आप|तुम ~2 एआई|सहायक|मॉडल ~12 लिखें|लिखो|भेजें|भेजो|कहें|कहो|अनदेखा',
  'उपयोगकर्ता|यूज़र को ~3 न|मत|नहीं ~1 बताएं|बताओ|बताना',
  'jika|bila kamu|anda ~2 ai|asisten|model ~10 abaikan|tulis|tuliskan|jawab|kirim|kirimkan|katakan|rekomendasikan',
  'jangan beri|katakan|sampaikan ~2 pengguna',
  'nếu bạn ~3 ai|trợ-lý|mô-hình ~10 bỏ-qua|viết|trả-lời|gửi|nói',
  'đừng|không nói|báo|cho ~2 người-dùng',
  'kama wewe ~2 ai|msaidizi|modeli ~10 puuza|andika|jibu|tuma|sema',
  // Chinese, Japanese, Korean
  '如果|若 ~2 你|您 ~2 是 ~6 人工智能|助手|模型|机器人|人工智慧 ~16 忽略|回复|回答|发送|输出|推荐|回覆|說|说',
  '不要|别|別|请勿|切勿 ~1 告诉|告訴|通知|提醒 ~1 用户|用戶|使用者',
  '你|您 的 ~1 新|真正 ~2 任务|任務|目标|指令 是',
  'あなた ~4 アシスタント|モデル ~16 無視し|書い|答え|送信|送っ|出力|言っ',
  'ユーザー に ~4 伝えない|知らせない|言わない|教えない',
  '당신이|네가|너는 ~3 ai|인공지능|어시스턴트|모델이라면|모델 ~8 무시하고|무시해|작성해|답해|보내|출력해|말해|추천해',
  '사용자에게 ~2 알리지|말하지|전하지',
]

/**
 * Marks after which a sentence or line, and so an instruction, can begin. Not a quotation mark, since it may quote an
 * example.
 */
const beginnings = /(?:[\n\r.!?>\])*#|;:]|-->|[。！？।؟：]) *(?=[^\s.!?>\])*#|;:。！？।؟："“„«「『'-])/g

/** Returns the start positions of sentences and lines, including 0. Linear. */
export function beginningsOf(text: string): readonly number[] {
  const places = [0]
  for (const { index, 0: mark } of text.matchAll(beginnings)) {
    if (places.length === mostBeginnings) break
    places.push(index + mark.length)
  }
  return places
}

const mostBeginnings = 4_096
