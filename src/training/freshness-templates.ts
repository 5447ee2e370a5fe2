/**
 * Questions of the project, labeled by whether the answer changes over time, for phrasings and languages with too few
 * labeled rows. Same syntax as `query-templates.ts`.
 */
import { filled } from './query-templates.ts'

const lists: Readonly<Record<string, string>> = {
  country:
    'france|japan|brazil|the united states|india|kenya|spain|australia|canada|egypt|poland|mexico|the uk|sweden|argentina',
  city: 'rome|london|tokyo|new york|berlin|madrid|chicago|dubai|seoul|lisbon|oslo|toronto|sydney|mumbai',
  firm: 'apple|google|tesla|amazon|netflix|microsoft|disney|toyota|samsung|spotify|nike|airbus|uber|meta|boeing|starbucks',
  office:
    'president|prime minister|ceo|king|mayor|governor|chancellor|finance minister|head coach|chairman|speaker of the house|chief justice|secretary general|defense minister',
  star: 'taylor swift|lionel messi|lebron james|elon musk|serena williams|roger federer|beyonce|stephen king|tom hanks|adele|simone biles|magnus carlsen|drake|rihanna',
  cup: "the world cup|the super bowl|the champions league|the nba championship|wimbledon|the oscars|the grammys|the nobel prize in literature|the tour de france|the ballon d'or|the stanley cup|eurovision|the world series|the booker prize|the us open",
  product:
    'android|ios|iphone|python|windows|chrome|macbook|playstation|ubuntu|tesla model|galaxy phone|node.js|xbox|linux kernel',
  asset:
    'bitcoin|gold|oil|ethereum|tesla stock|apple shares|silver|gas|the euro|nvidia stock|wheat|natural gas|regular gasoline',
  title:
    'hamlet|the mona lisa|the godfather|pride and prejudice|the starry night|star wars|don quixote|titanic|jurassic park|harry potter|the odyssey|imagine',
  past: '1969|1815|1492|2006|1945|1989|2012|1776|2018|1999|2021|1914',
  old: 'napoleon|albert einstein|cleopatra|abraham lincoln|mozart|isaac newton|marie curie|julius caesar|charles darwin|beethoven|gandhi|columbus',
  science:
    'water|gold|hydrogen|light|the human heart|the moon|a triangle|the sun|carbon|oxygen|a whale|diamond|iron|an octopus',
}

const current = `(what is|what's|tell me|give me) the (current|latest|present|) status of (the strike|the peace talks|the {past} mission|the trial|the wildfire|the merger|the road to {city}|the train to {city}|the {firm} recall)
  (flight|train|ferry|road|border) status (to|from|) (lh 2030|ba 117|{city}|{country})
  is (aws|slack|github|{firm}|the airport in {city}|the metro in {city}) (down|open|closed|delayed|working) (right now|today|again|)
  (latest|newest|current) ({product}|chromium|kernel) (version|release|update)
  wie ist der (aktuelle|) (status|stand) (der verhandlungen|des streiks|der bauarbeiten|der mission)
  who is (the|the current|now the|currently the) {office} of ({country}|{firm}|{city})
  (what is|what's|tell me) the (latest|newest|current|most recent) (version|release|model) of {product}
  (when is|when does|what date is) (the next|this year's) (solar eclipse|election|olympics|full moon|easter|lunar new year|black friday|leap year|ramadan|{cup}|iphone event)
  who (won|is leading|is favored in) (the latest|the last|this year's|last year's|the most recent) (election|season|final|race|tournament|grand prix|oscar for best picture|award)
  who (won|hosted|performed at) {cup} (last year|this year|most recently|last season)
  (what is|what's) the (price|current price|market price) of {asset} (today|now|right now|)
  how (much is|much does) {asset} (worth|cost) (today|now|)
  how much does (a netflix subscription|spotify premium|a {product}|a gallon of milk|a subway ticket in {city}|the basic plan of {firm}) cost
  is {asset} (above|below|over|under) {price} dollars
  when was (the last time) {asset} (above|below) {price} dollars
  (what is|how is|what's) the weather (like|) (in|for) {city} (today|tomorrow|this weekend|)
  will it rain in {city} (today|tomorrow|this weekend)
  how old is {star} (now|today|)
  how many (albums|books|goals|followers|grand slams|movies|children|awards|titles|employees|subscribers) (does|has) ({star}|{firm}) (have|won|scored|published|released)
  (what is|what was) {star}'s (latest|last|most recent|newest|next) (album|book|movie|concert|match|tour|girlfriend|team)
  when was {star}'s last (concert|match|album|game|movie)
  (who is|who's) the (richest|oldest living|tallest|highest-paid|most followed|top-ranked|best) (person|man|woman|athlete|player|actor) (in the world|on earth|alive|)
  (what is|which is) the (most popular|best-selling|most-watched|highest-grossing|most-streamed|most-viewed|most-subscribed|fastest|most expensive|largest) (song|movie|car|app|book|video|channel|company|game|supercomputer) (this week|this year|last year|last month|right now|in the world|of all time|on amazon)
  how many people (live in|are unemployed in) ({city}|{country}|the world) (now|today|)
  what is the (population|unemployment rate|inflation rate|gdp|minimum wage|interest rate|exchange rate|life expectancy) (of|in) {country} (now|today|)
  what (is the date today|day is it|time is it in {city}|month is it|year is it|is today's date|is on tv tonight|happened today|is happening in {city})
  how (long|many days|many years) (has it been since|until|are left until|have passed since) (the fall of the berlin wall|christmas|{star} was born|the next election|the end of the war|the opening of the louvre)
  how many years ago (was|did) ({old}|{title}) (born|released|die|published)
  what (are the|is the) (latest|recent|current) (news|headlines|developments|trends|polls|scores|results|standings|events|rankings|updates) (about|in|on|from|for) ({country}|{firm}|{star}|ai|football|the war)
  (which|what) team does {star} play for
  who holds the (world record|record) for (the marathon|the most goals|the high jump|the most olympic medals|the most wins)
  (what|which) (song|video|album|post|photo|movie) (has|holds the record for) the most (views|streams|likes|sales) (in one weekend|in a month|on youtube|on spotify|on instagram|)
  (what|which) (is|was) the (most-viewed|most-liked|most-streamed|best-selling) (clip|song|photo|album|post) (of all time|in its first week|on instagram|on tiktok|in one day)
  how many times has (a striker|a team|a driver|anyone|a woman) (won|broken|reached|repeated) (the record|a hat-trick|{cup}|the final|all four majors) (in history|in one match|in one season|)
  how many (women|climbers|players|companies|channels|films|teams) have (ever|so far|) (reached|won|crossed|passed|made) (space|{cup}|the summit|the antarctic|the billion mark)
  how many goals (did|has) {star} (score|scored) (last season|this season|for his current club|for her current team|in the league this year)
  (which|what) (studio|bank|team|company|airline|country|player) (had|sold|won|earned|made) the most (visitors|tickets|games|medals|profit|money|cars) (last year|last season|last month|this year) (according to forbes|in the country|)
  (is|are) (the current|the average|) (diesel price|rent|snow depth|mortgage rate|unemployment rate|minimum wage|temperature) (in|of) ({city}|{country}) (above|below|over|under) (2|5|15|30|900) (percent|dollars|degrees|)
  is {firm}'s (stock|share price|stock price) (above|below|over|under) (45|90|120|300) (a share|dollars a share|per share|dollars)
  in how many years will ({firm}|{star}|{city}) (celebrate its|turn|have its) (fiftieth|hundredth|twenty-fifth|40) (anniversary|birthday|)
  (what|which) (year|month|day) (is it now|are we in|is the present one) (in the hebrew calendar|in the islamic calendar|in the chinese calendar)
  how many (citations|followers|subscribers|patents|restaurants|stores|streams) (does|do) ({star}|{firm}) have (according to google|on instagram|worldwide|)
  in (what|which) (city|country|year) was the (current|reigning|most recent|latest) (president of {country}|world champion|winner of {cup}|ceo of {firm}|miss universe) born
  (what|which) (country|club|team) does the (reigning|current|latest|women's|men's) (champion|winner of {cup}|world number one) (come from|play for)
  how old is ({star}|the president of {country}|the ceo of {firm})'s (son|daughter|oldest child|wife|husband)
  is ({star}|the {office} of {country}|the {product}|{firm}) (still|already|currently) (alive|on tour|in office|supported|sold|hiring|injured|available)
  (what|which) (team|driver|horse|party|candidate|club) (is|are) (leading|ahead|in first place|on top) in ({cup}|the polls|the standings|the league)
  how many (wins|games|goals|medals|earthquakes|storms|strikes|points) (have there been|does {star} have|has {country} had|have they) (so far this year|this season|to date|since january)
  (what|when) (is|was|does) the (latest|newest|next|most recent) (episode|season|chapter|update|patch|expansion|sequel|conference) (of|for|by) ({product}|{firm}|the show|{title})
  who (is|are) (currently|now|presently|) (coaching|leading|hosting|running|representing|sponsoring) ({country}|{firm}|{city}|the club|the show|the district)
  (which|what) (country|city|company|person|athlete|website|bank|app) (currently|now|) (has|owns|produces|employs|earns) the (most|highest|largest|fewest) (people|visitors|money|fans|gold medals|debt|workers|users)
  how (long|many days) (until|before|till) (the next {cup}|{cup}|christmas|the next election|the new year|summer|the {product} comes out)
  (who|which team|what film|which song) (took|won|got|received) the (latest|most recent|last) (cup|medal|title|oscar for best film|grammy for best album|eurovision|prize)
  who is the (wife|husband|spouse|deputy|successor|doctor) of the (president|prime minister|king|mayor) of ({country}|{city})
  who (does|is) {star} (dating|married to|date)
  where (does|is) {star} (live|work|playing|now)
  is {star} (still alive|married|retired|still playing)
  did ({star}|the lakers|real madrid|the yankees) (win|play|lose) (last night|yesterday|today|the last game)
  on what date did ({star}|the lakers|the packers) last (play|win|lose)
  what (movies|films|albums|games|books) are (coming out|in theaters|out) (this week|this month|this year|next)
  what is the next ({firm}|marvel|pixar|bond|nintendo) (film|movie|game|product|phone)
  how much is {firm} worth
  who owns ({firm}|twitter|manchester united)
  what is the stock price of {firm}
  what (was|were) the (highest-grossing film|best-selling book|unemployment rate|most popular name) in {country} (last year|last month|last week)
  (gehört|wer ist) (der aktuelle|der derzeitige|zurzeit) (präsident|bundeskanzler|trainer|bürgermeister) von ({country}|{city})
  (wie ist|wie wird) das wetter (heute|morgen) in {city}
  (wie viel kostet|wie hoch ist der preis von) {asset} (heute|aktuell|)
  wie alt ist {star}
  (was sind|gibt es) (die neuesten|aktuelle) nachrichten (aus|über) {city}
  (qui est|qui est actuellement) (le président|le premier ministre|le maire|l'entraîneur) (de|du) ({country}|{city})
  (quel temps fait-il|météo) (aujourd'hui|demain) à {city}
  (quel est|combien coûte) (le prix|le cours) (du|de) {asset}
  quel âge a {star}
  (quién es|quién es actualmente) (el presidente|el alcalde|el entrenador|el ceo) de ({country}|{firm})
  (qué tiempo hace|cuál es el clima) (hoy|mañana) en {city}
  (cuánto cuesta|a cuánto está) {asset} (hoy|ahora)
  (cuántos años tiene|qué edad tiene) {star}
  (últimas noticias|noticias de hoy) (sobre|de) {city}
  (quem é|quem é atualmente) (o presidente|o prefeito|o técnico) (de|do) ({country}|{city})
  (como está o tempo|previsão do tempo) (hoje|amanhã) em {city}
  quanto custa {asset} hoje
  (chi è|chi è attualmente) (il presidente|il sindaco|l'allenatore) (di|del) ({country}|{city})
  (che tempo fa|meteo) (oggi|domani) a {city}
  (quanto costa|qual è il prezzo di) {asset} oggi
  (кто сейчас|кто) (президент|премьер-министр|мэр|тренер) ({country}|{city})
  (какая погода|прогноз погоды) (сегодня|завтра) в {city}
  (сколько стоит|какой курс) {asset} (сегодня|сейчас)
  сколько лет {star}
  последние новости {city}
  {country}(现任|现在的)(总统|总理|首相)是谁
  {city}(今天|明天)(天气|气温)(怎么样|如何)
  {asset}(今天|现在|目前)(价格|多少钱)
  {star}(今年|现在)多大
  最新的{product}版本是什么
  {country}の(現在の|今の)(大統領|首相)は誰
  {city}の(今日の|明日の)天気
  {asset}の(今の|今日の)価格
  من هو (رئيس|رئيس وزراء) {country} (الحالي|الآن)
  (كيف|ما هو) (الطقس|حالة الطقس) (اليوم|غدا) في {city}
  (كم|ما) (سعر|ثمن) {asset} (اليوم|الآن)
  מי (הנשיא|ראש הממשלה|ראש העיר) (הנוכחי|) של {country}
  (מה|איך) מזג האוויר (היום|מחר) ב {city}
  (כמה עולה|מה המחיר של) {asset} (היום|עכשיו)`

const settled = `who (wrote|painted|directed|composed|published) {title}
  who (was|was the first) (president|king|queen|emperor|prime minister) of {country} (in {past}|)
  (when|in what year) (did|was) ({old}|the second world war|the french revolution|{title}) (die|end|begin|born|published|released|take place)
  who (won|hosted) ({cup}|the election|the gold medal) in {past}
  where (was|is) {old} (born|buried|from)
  (what is|name) the (chemical symbol|boiling point|atomic number|color|formula|melting point|weight) of {science}
  (what is|which is) the (capital|official language|currency|national anthem|flag|continent) of {country}
  (who|which scientist) (invented|discovered) (the telephone|penicillin|gravity|the wheel|radium|dynamite|the light bulb|america)
  how many (bones|sides|planets|strings|legs|players|minutes|degrees|days) (are in|does|are there in) ({science}|a year|a football match|a guitar|a hexagon) (have|)
  what (causes|caused|is meant by|are the types of) (inflation|recessions|unemployment|elections|population growth|traffic|earthquakes|weather|stock prices)
  (explain|describe) (inflation|how elections work|the stock market|how prices form|how a president is elected|the role of a mayor)
  what (happened|was signed|was invented|was discovered) in {past}
  when did {firm} (start|go public|buy youtube|launch|acquire instagram|release the first phone)
  (when was|in which year was) {firm} founded and by whom
  how old was {old} when (he|she) died
  (who|which company|what studio) (created|developed|designed|founded|started|owned) (the first {product}|{firm}|{title}|the original {product}|chess) (in {past}|originally|)
  (who|what) (was|were) (the|) ({old}'s|{star}'s) (first|mother's|father's|birth|childhood) (job|name|teacher|home|film|album)
  (in|during) (which|what) (year|decade|century|month|war|city) (was|were|did) (the first {product}|{title}|{firm}|{old}|the treaty|the first {cup}) (released|founded|sold|signed|held|born|begin)
  (which|what) (side|colour|number|part|kind|type|layer) of ({science}|the flag|the road|the brain|rock|the atmosphere) (is|has|do|does|holds) (people drive on|the heaviest|formed first|closest to the core|made of iron|called the mantle)
  (who|which character|which actor) (kills|played|voiced|marries|betrays|narrates) (the king|the villain|the hero|the main character|the captain) in {title}
  how many (players|pieces|cards|strings|keys|letters|rooms|acts) (are there|are|does it have|are used) (in|on) (a chess set|a rugby team|a deck|a harp|the greek alphabet|{title}|a piano|the game of risk)
  (where|in which town|in what country) (did|was) (the first {product}|the first {cup}|{old}|{star}'s father|the treaty|the first hot-air balloon) (born|held|take off|signed|grow up|fly|made)
  (what|how much|how many people) (did|was|were) (the {past} war|the {past} flood|the eruption|the plague) (cost|kill|killed in|called|destroy)
  on what date did (constantinople|the soviet union|the bastille|{old}|the titanic|pompeii) (fall|collapse|die|sink|surrender|marry)
  (where|when|in which city) (is|was) the (first|third|5th|12th|last) (president|king|emperor|tsar|prime minister) of {country} (buried|born|crowned|shot)
  (who|tell me who) (is|was) the (director|writer|producer|composer) of the (movie|film|series|musical) (casablanca|psycho|{title}|vivement dimanche|amélie|the seventh seal)
  who (is|was) the (director|author|composer|creator|narrator|main character|villain|lead singer|publisher) (of|in) (the movie|the book|the film|) {title}
  what is the (title|name|setting|plot|hero's name) (of|in) the (first|last|only|second) (novel|film|symphony|play|album) (that {old} wrote|published by {old}|written while {old} was alive|of {old})
  who (was|is) the (last|first|only|youngest) (person|player|emperor|woman|king) to (win|hold|refuse|rule|receive) (the award|the title|the throne|the prize) before (the war|{past}|the revolution|{old})
  how old was (pelé|steffi graf|houdini|{old}) when (he|she) (retired|won {cup}|married|published {title}|was crowned)
  what was the (real|original|first|birth|former) name of ({old}|{star}|{firm}|{city}|the band)
  how many (books|novels|films|plays|parts|chapters) are (there|) in (the foundation|the hunger games|the original star wars|the narnia|the godfather) (series|saga)
  (what|which) is the (tallest|fastest|longest|deepest|smallest|hardest|lightest) (tree|fish|bird|cave|bone|muscle|canyon|insect|metal|gulf) (in the world|on earth|in the human body|)
  (which|what) (country|team|film|player|song) won {cup} in {past}
  (which|what) (award|prize|medal|title) did {old} (win|receive|refuse) (in {past}|together with {old}|)
  who (killed|succeeded|married|defeated) {old}
  who played (the lead|the villain|the hero) in {title}
  in which (city|country|river|ocean|state) (is|does|lies) (the eiffel tower|mount fuji|the nile|the great wall|{city}|the louvre)
  how (does|do|are|is) (a car engine|rainbows|volcanoes|magnets|vaccines|an air conditioner|cheese|a manual transmission|glass) (work|formed|made)
  why (is|are|do|does) (the sky|leaves|cats|ice|the sea|bread) (blue|green|purr|float|salty|rise)
  what (does|is the meaning of) (the word|) (serendipity|carpe diem|entropy|osmosis|irony) (mean|)
  how (far|long|high|deep|big) is (the moon|the nile|mount everest|the pacific|the marathon|a football field)
  by how much is {price} bigger than {price}
  when did {star} (land on the moon|sell {firm}|win her first title|release her debut album|buy {firm}|first win {cup})
  (how many|what) (goals|points|medals|home runs) did {star} (score|win|hit) in (college|{past}|the {past} season|the final)
  the {past} (election|olympics|final|earthquake|treaty) (was|took place|was held) (where|in which city|won by whom)
  (if|in) (tom is|anna is) {price} years old (and|, how old will) (will she be|he be) in {price} years
  (wer|wann|wo) (schrieb|erfand|starb|wurde) ({title}|{old}) (geboren|)
  (was ist|wie heißt) die hauptstadt von {country}
  (qui a|quand) (écrit|peint|inventé|découvert) {title}
  quelle est la capitale de {country}
  (quién|cuándo) (escribió|pintó|descubrió|nació) ({title}|{old})
  cuál es la capital de {country}
  (quem|quando) (escreveu|pintou|nasceu) ({title}|{old})
  (chi|quando) (ha scritto|ha dipinto|è nato) ({title}|{old})
  (say|reply|answer|do it|stop|continue|go on|start|use the tool|repeat it|count to ten|write it|try again|print it|show me|help me|tell me) now
  (what|and|so what|okay) now
  (thanks|great|thank you), (that works|it works|we are done|i understand it) now
  now (say|write|do|repeat|translate|shorten|explain|summarize|continue) (it|that|this) (again|in french|for me|)
  (кто|когда) (написал|изобрел|открыл|родился) ({title}|{old})
  столица {country}
  谁(写了|发明了|发现了|画了){title} {country}的首都(是哪里|)
  {title}を(書いた|描いた)のは誰
  من (كتب|اخترع|رسم|اكتشف) {title} ما هي عاصمة {country}
  מי (כתב|המציא|צייר|גילה) את {title} מהי בירת {country}`

/** Returns the project's questions, `each` of every template. Deterministic. */
export function writtenQuestions(each: number): readonly { readonly isCurrent: boolean; readonly text: string }[] {
  const all = { ...lists, price: '3|12|40|100|250|3.70|40,000|65|1,000|7' }
  return [
    ...filled(current, all, each).map(text => ({ isCurrent: true, text })),
    ...filled(settled, all, each).map(text => ({ isCurrent: false, text })),
  ]
}
