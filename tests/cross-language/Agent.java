import dev.tallylock.Tallylock;
import dev.tallylock.TallylockException;
import dev.tallylock.blocking.Client;
import dev.tallylock.blocking.Lease;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;

/** The agent in Java, over the Kotlin package; run from its source. */
public final class Agent {
    private final Client client;
    private final Map<String, Lease> leases = new HashMap<>();

    private Agent(Client client) {
        this.client = client;
    }

    public static void main(String[] arguments) throws Exception {
        try (Client client = Tallylock.connectBlocking(arguments[0])) {
            Agent agent = new Agent(client);
            BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                System.out.println(agent.answer(line.split(" ")));
            }
        }
    }

    private String answer(String[] words) throws InterruptedException {
        try {
            Long outcome = perform(words);
            return outcome == null ? "none" : outcome.toString();
        } catch (TallylockException error) {
            return "error " + error.getCode();
        }
    }

    private Long perform(String[] words) throws InterruptedException {
        String key = words[1];
        switch (words[0]) {
            case "acquire":
                Lease lease = client.lock(key, Duration.ofSeconds(30)).acquire();
                leases.put(key, lease);
                return lease.getFence();
            case "release":
                leases.remove(key).release();
                return 0L;
            case "add":
                return client.counter(key, Duration.ofMinutes(15)).add(Long.parseLong(words[2]));
            case "drain":
                return client.counter(key, Duration.ofMinutes(15)).drain();
            default:
                return client.counter(key, Duration.ofMinutes(15)).finish();
        }
    }
}
